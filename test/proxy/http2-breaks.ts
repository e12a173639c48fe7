import { randomBytes } from 'node:crypto'
import { constants } from 'node:http2'
import type { Socket } from 'node:net'
import type { Writable } from 'node:stream'
import t, { type Test } from 'tap'
import {
  endStream,
  frames,
  type SendFrame,
  sendGoaway,
  sendHead,
  sendReset,
  sendStatus,
  startFrames,
} from '../fixtures/frames-http2.ts'
import { startHttp2Gateway } from '../fixtures/gateway-http2.ts'
import { startHttp2 } from '../fixtures/origin-http2.ts'
import { openRaw } from '../fixtures/raw.ts'

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise(setImmediate)
}

/** Most tests need no gateway of their own: each has an upstream of its own. */
const shared = await startHttp2Gateway(t)

t.test('a client that leaves takes its stream with it, and nothing else', async t => {
  const origin = await startHttp2(t, stream => {
    stream.respond({ ':status': 200 })
    stream.write('begun')
  })
  const { send } = shared
  const leaving = new AbortController()
  const left = await send(`${origin.url}/left`, { signal: leaving.signal })
  const staying = await send(`${origin.url}/stays`)
  const reader = staying.body?.getReader()
  t.equal(Buffer.from((await reader?.read())?.value ?? '').toString(), 'begun')
  leaving.abort()
  await t.rejects(left.text())
  await until(() => origin.seen[0]?.closed !== undefined)
  t.equal(origin.seen[1]?.closed, undefined)
  t.equal(origin.connections.h2, 1)
  await reader?.cancel()
  await until(() => origin.seen[1]?.closed !== undefined)
})

t.test('an upload whose client leaves is broken off', async t => {
  const origin = await startHttp2(t, () => {})
  const { gateway, token } = shared
  const client = await openRaw(t, gateway.port)
  client.write(`POST /proxy/${origin.url}/ HTTP/1.1\r\nHost: g\r\nGateway-Authorization: Bearer ${token}\r\n`)
  client.write('Content-Length: 1000\r\n\r\nhalf of it')
  await until(() => origin.seen[0]?.body === 'half of it')
  client.socket.destroy()
  await until(() => origin.seen[0]?.closed !== undefined)
  t.equal(origin.seen[0]?.aborted, true)
  t.not(origin.seen[0]?.closed, constants.NGHTTP2_NO_ERROR)
})

const resets = Object.entries({
  NO_ERROR: constants.NGHTTP2_NO_ERROR,
  PROTOCOL_ERROR: constants.NGHTTP2_PROTOCOL_ERROR,
  INTERNAL_ERROR: constants.NGHTTP2_INTERNAL_ERROR,
  CANCEL: constants.NGHTTP2_CANCEL,
  ENHANCE_YOUR_CALM: constants.NGHTTP2_ENHANCE_YOUR_CALM,
})

t.test('a stream that is reset before its answer is 502, and is not sent again', async t => {
  let code = 0
  let requests = 0
  const origin = await startFrames(t, (send, id) => {
    requests += 1
    sendReset(send, id, code)
  })
  const { send } = shared
  for (const [name, number] of resets) {
    code = number
    const answer = await send(origin.url)
    t.strictSame([answer.status, answer.headers.get('gateway-error')], [502, 'upstream_failed'], name)
    const upload = await send(origin.url, { method: 'POST', body: randomBytes(1_000_000) })
    t.equal(upload.status, 502, `${name} of an upload`)
  }
  t.equal(requests, 2 * resets.length)
  t.equal(origin.connections(), 1, 'the connection is as good as before')
})

t.test('a stream that is reset behind its head breaks off: what is cut short is never taken for whole', async t => {
  let code = 0
  const origin = await startFrames(t, (send, id) => {
    sendHead(send, id)
    send(frames.data, 0, id, Buffer.from('begun'))
    setImmediate(() => sendReset(send, id, code))
  })
  const { send } = shared
  for (const [name, number] of resets) {
    code = number
    const answer = await send(origin.url)
    await t.rejects(answer.text(), name)
  }
})

/** An upstream that refuses the first request of each two, and answers the second. */
async function startRefusing(t: Test, refuse: (send: SendFrame, id: number) => void) {
  let requests = 0
  const origin = await startFrames(t, (send, id) => {
    requests += 1
    if (requests % 2 === 1) refuse(send, id)
    else {
      sendHead(send, id)
      send(frames.data, endStream, id, Buffer.from('whole'))
    }
  })
  return { url: origin.url, seen: () => [requests, origin.connections()] }
}

t.test('a GET whose stream is refused is sent once more; a POST is 502', async t => {
  const { url, seen } = await startRefusing(t, (send, id) => sendReset(send, id, constants.NGHTTP2_REFUSED_STREAM))
  const { send } = shared
  t.equal(await (await send(url)).text(), 'whole')
  t.strictSame(seen(), [2, 1], 'the connection is as good as before')
  t.equal((await send(url, { method: 'POST' })).status, 502)
  t.strictSame(seen(), [3, 1])
})

t.test('a GET whose stream is refused every time is sent twice', async t => {
  let requests = 0
  const { url } = await startFrames(t, (send, id) => {
    requests += 1
    sendReset(send, id, constants.NGHTTP2_REFUSED_STREAM)
  })
  t.equal((await shared.send(url)).status, 502)
  t.equal(requests, 2)
})

t.test('a GET that GOAWAY leaves unprocessed is sent once more, on a new connection; a POST is 502', async t => {
  const { url, seen } = await startRefusing(t, send => sendGoaway(send, 0, constants.NGHTTP2_NO_ERROR))
  const { send } = shared
  t.equal(await (await send(url)).text(), 'whole')
  t.strictSame(seen(), [2, 2])
  t.equal((await send(url, { method: 'POST' })).status, 502)
  t.strictSame(seen(), [3, 2])
})

t.test('a GET whose kept connection is gone is sent once more, on a new connection; a POST is 502', async t => {
  const closing = ['/closes', '/post']
  const sockets: Socket[] = []
  const origin = await startHttp2(t, (stream, _, headers) => {
    const path = headers[':path'] ?? ''
    if (closing.includes(path)) {
      closing.splice(closing.indexOf(path), 1)
      sockets.at(-1)?.destroy()
    } else {
      stream.respond({ ':status': 200 })
      stream.end('whole')
    }
  })
  origin.server.on('secureConnection', socket => void sockets.push(socket))
  const { send } = shared
  t.equal(await (await send(`${origin.url}/first`)).text(), 'whole')
  t.equal(await (await send(`${origin.url}/closes`)).text(), 'whole')
  t.equal(origin.connections.h2, 2)
  t.equal((await send(`${origin.url}/post`, { method: 'POST' })).status, 502)
  t.strictSame(
    origin.seen.map(({ headers }) => headers[':path']),
    ['/first', '/closes', '/closes', '/post'],
  )
})

t.test('an upstream that closes the connection is 502, and the next request gets a new one', async t => {
  let answers = false
  const origin = await startHttp2(t, stream => {
    if (answers) {
      stream.respond({ ':status': 200 })
      stream.end('back')
    } else stream.session?.destroy(undefined, constants.NGHTTP2_INTERNAL_ERROR)
  })
  const { send } = shared
  const answer = await send(`${origin.url}/`)
  t.strictSame([answer.status, answer.headers.get('gateway-error')], [502, 'upstream_failed'])
  answers = true
  t.equal(await (await send(`${origin.url}/`)).text(), 'back')
})

t.test('GOAWAY lets what is under way finish, and the next request goes elsewhere', async t => {
  const finish: (() => void)[] = []
  const origin = await startHttp2(t, (stream, _, headers) => {
    stream.respond({ ':status': 200 })
    stream.write('begun, ')
    if (headers[':path'] === '/next') stream.end('next')
    else {
      finish.push(() => stream.end('finished'))
      stream.session?.goaway(constants.NGHTTP2_NO_ERROR, stream.id)
    }
  })
  const { send } = shared
  const first = await send(`${origin.url}/`)
  await until(() => finish.length === 1)
  t.equal(await (await send(`${origin.url}/next`)).text(), 'begun, next')
  finish[0]?.()
  t.equal(await first.text(), 'begun, finished')
  t.equal(origin.connections.h2, 2)
})

t.test('no request of one agent breaks those of another on the same connection', async t => {
  const origin = await startHttp2(t, (stream, _, headers) => {
    stream.respond({ ':status': 200 })
    if (headers[':path'] === '/long') stream.write('begun, ')
    else stream.end('ok')
    if (headers[':path'] === '/end') for (const other of longs) other.end('finished')
    if (headers[':path'] === '/long') longs.push(stream)
  })
  const longs: { end(text: string): void }[] = []
  const { gateway, token, send } = shared
  const long = await send(`${origin.url}/long`)
  const odd = [
    'Content-Type: a\r\ncontent-type: b\r\n',
    'Host2: x\r\n:path: /y\r\n',
    'TE: gzip\r\n',
    'X-Long: '.padEnd(8_000, 'x').concat('\r\n'),
    'Http2-Settings: AAA\r\nUpgrade: h2c\r\n',
    '__proto__: x\r\n__proto__: y\r\nconstructor: z\r\n',
    'Cookie: a=1\r\nCookie: b=2\r\n',
    "!#$%&'*+-.^_`|~: token\r\n",
    'X-Bytes: \x80\xff\r\n',
    'Content-Length: 0\r\n',
    'Keep-Alive: 5\r\nProxy-Connection: x\r\nTrailer: x\r\n',
  ]
  for (const fields of odd) {
    const client = await openRaw(t, gateway.port)
    client.write(
      Buffer.from(
        `GET /proxy/${origin.url}/ HTTP/1.1\r\nHost: g\r\nGateway-Authorization: Bearer ${token}\r\nConnection: close\r\n${fields}\r\n`,
        'latin1',
      ),
    )
    t.match(await client.closed(), /^HTTP\/1\.1 (?:200|4\d\d) /, JSON.stringify(fields.slice(0, 60)))
  }
  t.equal(await (await send(`${origin.url}/end`)).text(), 'ok')
  t.equal(await long.text(), 'begun, finished')
  t.equal(origin.connections.h2, 1)
})

t.test(
  'an upstream that does not answer is cut off in time; a client that sends its body slowly does not make it late',
  async t => {
    const origin = await startHttp2(t, (stream, _, headers) => {
      if (headers[':path'] !== '/slow') return
      stream.once('end', () => {
        stream.respond({ ':status': 200 })
        stream.end('all of it')
      })
    })
    const { gateway, token, send } = await startHttp2Gateway(t, { HeadersTimeoutSeconds: 1 })
    const client = await openRaw(t, gateway.port)
    client.write(`POST /proxy/${origin.url}/slow HTTP/1.1\r\nHost: g\r\nGateway-Authorization: Bearer ${token}\r\n`)
    client.write('Content-Length: 10\r\n\r\nhalf ')
    await until(() => origin.seen[0]?.body === 'half ')
    // Sent later, and so late only when the slow one has waited longer.
    const silent = await send(`${origin.url}/silent`)
    t.strictSame([silent.status, silent.headers.get('gateway-error')], [504, 'upstream_timeout'])
    await until(() => origin.seen[1]?.closed !== undefined)
    client.write('whole')
    t.match(await client.until(/all of it/), /^HTTP\/1\.1 200 /)
  },
)

t.test('an answer that stops midway is cut off in time, and an event stream may be silent for longer', async t => {
  const origin = await startHttp2(t, (stream, _, headers) => {
    const isHalf = headers[':path'] === '/half'
    stream.respond({ ':status': 200, ...(!isHalf && { 'content-type': 'text/event-stream' }) })
    stream.write('data: one\n\n')
    if (isHalf) stream.once('close', goOn)
    else events = stream
  })
  let events: Writable | undefined
  const goOn = () => events?.end('data: two\n\n')
  const { send } = await startHttp2Gateway(t, { IdleTimeoutSeconds: 1 })
  const answer = await send(`${origin.url}/`)
  // Silent later, and so late only when the event stream has been silent for longer.
  const half = await send(`${origin.url}/half`)
  await t.rejects(half.text())
  t.equal(await answer.text(), 'data: one\n\ndata: two\n\n')
})

t.test('a status above 599 is passed on, and one that is none is 502', async t => {
  for (const [given, status, error] of [
    ['999', 999, null],
    ['600', 600, null],
    ['099', 502, 'upstream_failed'],
  ] as const) {
    const { url } = await startFrames(t, (send, id) => sendStatus(send, id, given))
    const answer = await shared.send(`${url}/`)
    t.strictSame([answer.status, answer.headers.get('gateway-error')], [status, error], given)
  }
})
