/** Threat T32 of SECURITY.md: requests that are sent ahead of their answers are not read without end. */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import t, { type Test } from 'tap'
import { awaitAnswers, awaitTurn, putBack } from '../../src/http/pipelining.ts'
import { eventually, startGateway } from '../fixtures/gateway.ts'
import { openRaw } from '../fixtures/raw.ts'

const request = 'GET /health HTTP/1.1\r\nHost: g\r\n\r\n'
const many = 10_000
/** One that is served, and those behind it. */
const most = 17

type Serve = (req: IncomingMessage, res: ServerResponse) => void

/** A server that counts the requests that node has parsed, and those that have had their turn. */
async function start(t: Test, stallMs: number, serve: Serve) {
  let came = 0
  let served = 0
  const server = createServer({ optimizeEmptyRequests: true }, (req, res) => {
    came += 1
    const turn = () => {
      served += 1
      serve(req, res)
    }
    if (res.socket === null) awaitTurn(req.socket, res, stallMs, turn)
    else turn()
  })
  server.on('clientError', (error, socket) => {
    if (!putBack(error, socket as Socket)) socket.destroy()
  })
  server.on('upgrade', ({ socket }) => awaitAnswers(socket, () => socket.end('taken over')))
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return { port: (server.address() as AddressInfo).port, came: () => came, served: () => served }
}

const turns = async (count: number) => {
  for (let turn = 0; turn < count; turn++) await new Promise(setImmediate)
}

t.test('no request behind the 16th that waits is parsed, and all are answered in the end', async t => {
  const waiting: ServerResponse[] = []
  const { port, came, served } = await start(t, 60_000, (_, res) => waiting.push(res))
  const client = await openRaw(t, port)
  client.write(request.repeat(many))
  await eventually(came, count => count >= most)
  await turns(50)
  t.equal(came(), most)
  t.equal(served(), 1)
  let mostWaiting = 0
  await eventually(
    () => {
      for (const res of waiting.splice(0)) res.end('ok')
      mostWaiting = Math.max(mostWaiting, came() - served())
      return served()
    },
    count => count === many,
  )
  t.equal(came(), many)
  t.ok(mostWaiting <= most, `${mostWaiting} waited`)
})

t.test('each request has a turn of the event loop of its own', async t => {
  let inTurn = 0
  let mostInTurn = 0
  const { port, served } = await start(t, 60_000, (_, res) => {
    inTurn += 1
    mostInTurn = Math.max(mostInTurn, inTurn)
    setImmediate(() => {
      inTurn = 0
    })
    res.end('ok')
  })
  const client = await openRaw(t, port)
  client.write(request.repeat(1_000))
  t.equal(await eventually(served, count => count === 1_000), 1_000)
  // The first request of all is served when it comes, and the second may be in the next turn before that one is over.
  t.ok(mostInTurn <= 2, `${mostInTurn} in one turn`)
})

t.test('bodies arrive whole, wherever the connection was paused', async t => {
  const bodies: string[] = []
  const { port } = await start(t, 60_000, async (req, res) => {
    bodies.push(await text(req))
    res.end('ok')
  })
  const client = await openRaw(t, port)
  const wanted = Array.from({ length: 200 }, (_, i) => (i % 3 === 0 ? '' : 'x'.repeat(i * 20)))
  const all = wanted.map(body => `POST / HTTP/1.1\r\nHost: g\r\nContent-Length: ${body.length}\r\n\r\n${body}`)
  client.write(all.join(''))
  await eventually(
    () => bodies.length,
    count => count === wanted.length,
  )
  t.strictSame(bodies, wanted)
})

t.test('a request with nothing behind it is whole', async t => {
  const { port, served } = await start(t, 60_000, (req, res) => req.resume().once('end', () => res.end('ok')))
  const client = await openRaw(t, port)
  client.write('POST / HTTP/1.1\r\nHost: g\r\nContent-Length: 0\r\n\r\n'.repeat(most))
  const answers = () => client.text().split('HTTP/1.1 200 OK').length - 1
  t.equal(await eventually(answers, count => count === most), most)
  t.equal(served(), most)
})

t.test(
  'malformed bytes behind requests that wait are not read before these are answered, and end the connection',
  async t => {
    const { port, served } = await start(t, 60_000, (_, res) => setImmediate(() => res.end('ok')))
    const client = await openRaw(t, port)
    client.write(`${request.repeat(100)}nonsense\r\n\r\n`)
    await client.closed()
    t.ok(served() >= 100 - most, `${served()} were served`)
  },
)

t.test('a client that takes nothing meanwhile is cut off with a reset', async t => {
  const closed = Promise.withResolvers<void>()
  const { port, came } = await start(t, 20, (req, res) => {
    req.socket.once('close', closed.resolve)
    res.end('x'.repeat(1_000_000))
  })
  const client = await openRaw(t, port)
  client.socket.pause()
  client.write(request.repeat(many))
  await closed.promise
  t.ok(came() < many)
  const error = once(client.socket, 'close').catch(failure => failure)
  client.socket.resume()
  t.match(await error, { code: 'ECONNRESET' })
})

t.test('one whose answer is not there yet is not', async t => {
  const waiting: ServerResponse[] = []
  const { port, came } = await start(t, 1, (_, res) => waiting.push(res))
  const client = await openRaw(t, port)
  client.write(request.repeat(most + 1))
  await eventually(came, count => count === most)
  const began = performance.now()
  await eventually(
    () => performance.now() - began,
    passed => passed > 50,
  )
  t.notOk(client.socket.destroyed)
  for (const res of waiting.splice(0)) res.end('ok')
  await client.until(/ok/)
})

t.test('an answer that waits for its reader goes on before the connection is taken over', async t => {
  const pieces = 100
  const { port } = await start(t, 60_000, (_, res) => {
    Readable.from(Array(pieces).fill('x'.repeat(100_000))).pipe(res)
  })
  const client = await openRaw(t, port)
  const upgrade = request.replace('\r\n\r\n', '\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n')
  client.write(request + request + upgrade)
  const all = await client.closed()
  t.equal(all.match(/x{100000}/g)?.length, 2 * pieces)
  t.ok(all.endsWith('\r\n0\r\n\r\ntaken over'))
})

t.test('pipelined calls of the gateway are all answered, in order', async t => {
  const gateway = await startGateway(t)
  const client = await openRaw(t, gateway.port)
  client.write(request.repeat(500))
  const answers = () => client.text().split('HTTP/1.1 200 OK').length - 1
  t.equal(await eventually(answers, count => count === 500), 500)
})
