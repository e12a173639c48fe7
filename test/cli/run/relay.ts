import { once } from 'node:events'
import { createServer as createHttpServer, type IncomingMessage } from 'node:http'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import t, { type Test } from 'tap'
import { createRelay, type RelayParts } from '../../../src/cli/run/relay.ts'

const password = 'of the run'
const basic = `Basic ${Buffer.from(`run:${password}`).toString('base64')}`

async function listen(t: Test, server: Server): Promise<number> {
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => server.close())
  // It listens, so it has a port.
  return (server.address() as AddressInfo).port
}

/** A gateway that remembers what it was asked, and echoes what comes in a tunnel or as a body. */
async function startGateway(t: Test) {
  const seen: IncomingMessage[] = []
  const server = createHttpServer((req, res) => {
    seen.push(req)
    req.pipe(res)
  })
  server.on('connect', (req, socket, head) => {
    seen.push(req)
    socket.on('error', () => {})
    socket.write('HTTP/1.1 200 Connection established\r\n\r\n')
    socket.write(head)
    socket.pipe(socket)
  })
  return { seen, port: await listen(t, server) }
}

async function startRelay(t: Test, port: number, more: Partial<RelayParts> = {}): Promise<number> {
  const relay = createRelay({
    connect: onReady => connect({ port, host: '127.0.0.1', allowHalfOpen: true }, onReady),
    gatewayName: 'the gateway',
    authorization: () => 'Bearer key',
    password,
    ...more,
  })
  return listen(t, createServer({ allowHalfOpen: true }, relay))
}

/** What the relay answers to these bytes until it closes the connection, or the answer has `until` in it. */
async function ask(port: number, sent: string, until?: string): Promise<string> {
  const socket = connect({ port, host: '127.0.0.1' })
  socket.write(sent)
  let text = ''
  for await (const chunk of socket.setEncoding('latin1')) {
    text += chunk
    if (until !== undefined && text.includes(until)) break
  }
  return text
}

t.test('a tunnel is opened with the key of the agent, and passes bytes both ways', async t => {
  const { seen, port } = await startGateway(t)
  const relay = await startRelay(t, port)
  const head = `CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\nProxy-Authorization: ${basic}\r\n\r\n`
  const answer = await ask(relay, `${head}early bytes`, 'early bytes')
  t.equal(answer, 'HTTP/1.1 200 Connection established\r\n\r\nearly bytes')
  t.equal(seen[0]?.url, 'example.com:443')
  t.equal(seen[0]?.headers['proxy-authorization'], 'Bearer key')
})

t.test('other requests pass with their body, and end their connection', async t => {
  const { seen, port } = await startGateway(t)
  const relay = await startRelay(t, port)
  const head = `POST http://example.com/a HTTP/1.1\r\nHost: example.com\r\nProxy-Authorization: ${basic}\r\n`
  const chunked = 'Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n'
  t.match(await ask(relay, head + chunked), /^HTTP\/1\.1 200 OK[\s\S]*hello/)
  t.equal(seen[0]?.url, 'http://example.com/a')
  t.match(seen[0]?.headers, { 'proxy-authorization': 'Bearer key', connection: 'close' })
})

t.test('the key is read for each connection: it may be renewed', async t => {
  const { seen, port } = await startGateway(t)
  let key = 'first'
  const relay = await startRelay(t, port, { authorization: () => `Bearer ${key}` })
  const head = `GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\nProxy-Authorization: ${basic}\r\n\r\n`
  await ask(relay, head)
  key = 'second'
  await ask(relay, head)
  t.strictSame(
    seen.map(({ headers }) => headers['proxy-authorization']),
    ['Bearer first', 'Bearer second'],
  )
})

t.test('without the password nothing reaches the gateway', async t => {
  const { seen, port } = await startGateway(t)
  const relay = await startRelay(t, port)
  const other = `Basic ${Buffer.from('run:other').toString('base64')}`
  const credentials = [
    '',
    `Proxy-Authorization: ${other}\r\n`,
    'Proxy-Authorization: Bearer key\r\n',
    `Proxy-Authorization: ${basic}\r\nProxy-Authorization: ${basic}\r\n`,
  ]
  for (const credential of credentials) {
    const answer = await ask(relay, `CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n${credential}\r\n`)
    t.match(answer, /^HTTP\/1\.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm=/)
    t.match(answer, /\r\nConnection: close\r\n/)
  }
  t.equal(seen.length, 0)
})

t.test('where nothing else can connect there is no password', async t => {
  const { port } = await startGateway(t)
  const relay = await startRelay(t, port, { password: undefined })
  t.match(await ask(relay, 'GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n'), /^HTTP\/1\.1 200/)
})

t.test('a head that comes in pieces is read whole, and one without end is refused', async t => {
  const { seen, port } = await startGateway(t)
  const relay = await startRelay(t, port)
  const socket = connect({ port: relay, host: '127.0.0.1' })
  for (const piece of [
    'CONNECT example.com:443 HT',
    'TP/1.1\r\nHost: example.com:443\r\nProxy-Auth',
    `orization: ${basic}\r`,
    '\n\r',
    '\n',
  ]) {
    socket.write(piece)
    await new Promise(setImmediate)
  }
  t.match(String((await once(socket, 'data'))[0]), /^HTTP\/1\.1 200/)
  socket.destroy()
  t.match(await ask(relay, `GET http://a.example/ HTTP/1.1\r\nX: ${'x'.repeat(70_000)}`, '\r\n\r\n'), /^HTTP\/1\.1 431/)
  t.equal(seen.length, 1)
})

t.test('a gateway that is not there is named', async t => {
  const gone = createServer()
  const port = await listen(t, gone)
  gone.close()
  const relay = await startRelay(t, port)
  const answer = await ask(relay, `CONNECT a.example:443 HTTP/1.1\r\nHost: a\r\nProxy-Authorization: ${basic}\r\n\r\n`)
  t.match(answer, /^HTTP\/1\.1 502 No Gateway Answers\r\n[\s\S]*No gateway answers at the gateway \(ECONNREFUSED\)\.$/)
})

t.test('the end of one side reaches the other, and what is under way still arrives', async t => {
  const sockets: Socket[] = []
  const received: string[] = []
  const gateway = createServer({ allowHalfOpen: true }, socket => {
    sockets.push(socket)
    socket.on('data', chunk => received.push(String(chunk)))
    socket.on('end', () => socket.end('the answer to all of it'))
  })
  const relay = await startRelay(t, await listen(t, gateway))
  const socket = connect({ port: relay, host: '127.0.0.1', allowHalfOpen: true })
  socket.end(`CONNECT a.example:443 HTTP/1.1\r\nHost: a\r\nProxy-Authorization: ${basic}\r\n\r\n${'x'.repeat(100_000)}`)
  t.equal((await socket.setEncoding('latin1').toArray()).join(''), 'the answer to all of it')
  t.match(received.join(''), /\r\n\r\nx{100000}$/)
})

t.test('a connection that ends before a whole head is closed at once', async t => {
  const { port } = await startGateway(t)
  const relay = await startRelay(t, port)
  for (const sent of ['', 'CONNECT a.example:443 HTTP/1.1\r\n']) {
    const socket = connect({ port: relay, host: '127.0.0.1', allowHalfOpen: true })
    socket.end(sent).resume()
    await once(socket, 'close')
    t.equal(socket.bytesRead, 0)
  }
})

t.test('a program that leaves takes its connection to the gateway with it', async t => {
  const accepted = Promise.withResolvers<Socket>()
  const gateway = createServer(socket => accepted.resolve(socket.on('error', () => {}).resume()))
  const relay = await startRelay(t, await listen(t, gateway))
  const socket = connect({ port: relay, host: '127.0.0.1' })
  socket.write(`CONNECT a.example:443 HTTP/1.1\r\nHost: a\r\nProxy-Authorization: ${basic}\r\n\r\n`)
  const upstream = await accepted.promise
  socket.resetAndDestroy()
  await once(upstream, 'close')
  t.ok(upstream.destroyed)
})
