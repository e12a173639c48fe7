/** T32: connections that stand still, or are too many, cost nobody else anything. */

import t from 'tap'
import { fetchDocumented } from '../fixtures/documented.ts'
import { eventually, startGateway } from '../fixtures/gateway.ts'
import { startOrigin } from '../fixtures/origin.ts'
import { openRaw, type RawClient } from '../fixtures/raw.ts'

const gateway = await startGateway(t, {
  config: { System: { Server: { HeadersTimeoutSeconds: 2, IdleTimeoutSeconds: 1, KeepAliveSeconds: 1 } } },
})
const { token } = await gateway.agent()
const auth = `Gateway-Authorization: Bearer ${token}\r\n`

/** Sends this and no more; resolves with all that came once the gateway has closed. */
async function stall(text: string): Promise<string> {
  const client = await openRaw(t, gateway.port)
  client.write(text)
  return client.closed()
}

// All of them wait for a clock: they wait together, and each test looks at its own.
const post = 'POST /tokens HTTP/1.1\r\nHost: g\r\n'
const stalled = {
  silent: stall(''),
  halfHead: stall('GET /health HTTP/1.1\r\nHost: g\r\nX-Slow: '),
  login: stall(`${post}Content-Length: 10\r\n\r\n{`),
  chunked: stall(`${post}Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n`),
  unreadBody: stall('GET /health HTTP/1.1\r\nHost: g\r\nContent-Length: 10\r\n\r\n'),
  refused: stall('POST /proxy/http://a.example/ HTTP/1.1\r\nHost: g\r\nContent-Length: 10\r\n\r\n'),
  idle: stall('GET /health HTTP/1.1\r\nHost: g\r\n\r\n'),
  hundreds: Promise.all(Array.from({ length: 300 }, () => stall(post))),
}

t.test('hundreds of slow connections do not keep anyone else waiting', async t => {
  const origin = await startOrigin(t)
  t.equal((await fetchDocumented(`${gateway.url}/health`)).status, 200)
  t.equal((await gateway.proxy(token, `${origin.url}/`)).status, 200)
})

t.test('a connection that says nothing, or half a head, is closed', async t => {
  t.match(await stalled.halfHead, /^HTTP\/1\.1 408 /)
  t.match(await stalled.silent, /^(?:HTTP\/1\.1 408 |$)/)
  t.ok((await stalled.hundreds).every(answer => answer.startsWith('HTTP/1.1 408 ')))
})

t.test('a call of the gateway itself whose body does not come is answered 408, without a token too', async t => {
  for (const answer of [await stalled.login, await stalled.chunked]) {
    t.match(answer, /^HTTP\/1\.1 408 /)
    t.match(answer, /gateway-error: request_timeout/i)
  }
})

t.test('an answer does not keep a connection whose request never ends', async t => {
  t.match(await stalled.unreadBody, /^HTTP\/1\.1 200 /)
  t.match(await stalled.refused, /^HTTP\/1\.1 401 /)
})

t.test('an idle connection is closed', async t => {
  t.match(await stalled.idle, /^HTTP\/1\.1 200 /)
})

t.test('a client that takes nothing of its answer is cut off, and so is the upstream', async t => {
  let closed: () => void = () => {}
  const upstreamClosed = new Promise<void>(resolve => {
    closed = resolve
  })
  const endless = await startOrigin(t, (_req, res) => {
    const chunk = Buffer.alloc(65_536)
    const more = () => {
      while (!res.destroyed && res.write(chunk));
    }
    res.on('drain', more).on('close', closed)
    more()
  })
  const client = await openRaw(t, gateway.port)
  client.socket.pause()
  client.write(`GET /proxy/${endless.url}/ HTTP/1.1\r\nHost: g\r\n${auth}\r\n`)
  await upstreamClosed
  client.socket.resume()
  await client.closed()
  t.equal(endless.sockets.size, 0)
})

t.test('one address has so many connections and no more', async t => {
  const config = { System: { Server: { MaxConnectionsPerAddress: 8 } } }
  const capped = await startGateway(t, { config })
  const connect = async () => {
    const client = await openRaw(t, capped.port)
    client.write('GET /health HTTP/1.1\r\nHost: g\r\n\r\n')
    return client.until(/200 OK/).then(
      () => client,
      () => undefined,
    )
  }
  const clients: (RawClient | undefined)[] = []
  for (let i = 0; i < 20; i++) clients.push(await connect())
  const accepted = clients.filter(client => client !== undefined)
  // The admin of the test has one of its own.
  t.ok(accepted.length >= 6 && accepted.length <= 8, `${accepted.length} connections`)
  const told = () => capped.log.find(({ limit }) => limit === 'address_connections')
  t.match(await eventually(told, line => line !== undefined), { message: 'a limit was reached', clientIp: '127.0.0.1' })
  accepted[0]?.socket.end('GET /health HTTP/1.1\r\nHost: g\r\nConnection: close\r\n\r\n')
  await accepted[0]?.closed()
  // The thread that had it may see the end of a connection a little later than its client.
  t.ok(await eventually(connect, client => client !== undefined), 'a place that is free again is given')
})

t.test('all clients together have so many connections, and the log names the limit', async t => {
  const config = { System: { Server: { MaxConnections: 4 } } }
  const full = await startGateway(t, { config })
  for (let count = 0; count < 8; count++) {
    const client = await openRaw(t, full.port)
    client.write('GET /health HTTP/1.1\r\nHost: g\r\n\r\n')
    await client.until(/200 OK/).catch(() => {})
  }
  const told = () => full.log.find(({ limit }) => limit === 'connections')
  t.match(await eventually(told, line => line !== undefined), { message: 'a limit was reached', clientIp: '127.0.0.1' })
})
