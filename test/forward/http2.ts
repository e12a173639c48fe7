/** HTTP/2 in tunnels that the gateway reads, for the hosts of Proxy:Http2Hosts. Threats T20, T40, T42, T46, T70. */
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import type { ServerHttp2Stream } from 'node:http2'
import t from 'tap'
import { openSecure, startForwardReview } from '../fixtures/forward.ts'
import { answerOf, http2Setup, openHttp2 } from '../fixtures/forward-http2.ts'
import { eventually } from '../fixtures/gateway.ts'
import { startHttp2 } from '../fixtures/origin-http2.ts'

const silent: ServerHttp2Stream[] = []
const origin = await startHttp2(t, (stream, _seen, headers) => {
  switch (headers[':path']) {
    case '/echo':
      stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true })
      stream.once('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0', 'grpc-message': 'fine' }))
      stream.pipe(stream)
      break
    case '/silent':
      silent.push(stream)
      break
    case '/broken':
      stream.respond({ ':status': 200 })
      stream.write('half', () => stream.destroy(new Error('broken')))
      break
    case '/hints':
      stream.additionalHeaders({ ':status': 103, link: '</style.css>; rel=preload' })
      stream.respond({ ':status': 200 })
      stream.pipe(stream)
      break
    case '/trailers-only':
      stream.respond({ ':status': 200, 'grpc-status': '5' }, { endStream: true })
      break
    case '/status-first':
      stream.respond({ ':status': 200, 'grpc-status': '0' })
      stream.end('a body all the same')
      break
    default:
      stream.respond({ ':status': 200, 'set-cookie': ['a=1', 'b=2'], 'x-one': 'é', 'proxy-authenticate': 'Basic' })
      stream.end('hello over h2')
  }
})
const to = origin.url.slice('https://'.length)
const rates = { System: { RateLimit: { RequestsPerMinute: 100_000, Burst: 100_000, MaxInFlight: 8 } } }
const gateway = await startForwardReview(t, http2Setup(rates))
const { token, id } = await gateway.agent()
const authorization = `Bearer ${token}`
const newKey = async (agentId = id) =>
  JSON.parse((await gateway.manage('POST', `/agents/${agentId}/keys`, { name: 'own' })).text)
const problem = (text: string) => JSON.parse(text).code

t.test('a request reaches the upstream, and its answer the client', async t => {
  const client = await openHttp2(t, gateway, { to, authorization })
  const fields = { ':path': '/a?b=c', cookie: ['x=1', 'y=2'], 'x-mine': 'é', 'proxy-authorization': authorization }
  const { status, body, headers, reset } = await client.send(fields)
  t.strictSame([status, body, reset], [200, 'hello over h2', 0])
  t.match(headers, { 'set-cookie': ['a=1', 'b=2'], 'x-one': 'é', 'gateway-request-id': String })
  t.equal(headers['proxy-authenticate'], undefined)
  const seen = origin.seen.at(-1)
  t.match(seen?.headers, {
    ':path': '/a?b=c',
    ':authority': to,
    cookie: 'x=1; y=2',
    'x-mine': 'é',
    via: '2 agent-gateway',
  })
  t.notOk(seen?.rawHeaders.join().includes(token), 'the credential for the proxy is not sent on')
  const lines = await gateway.exchanges(1)
  t.match(lines, [{ road: 'intercepted', agentId: id, method: 'GET', path: '/a', status: 200, ending: 'forwarded' }])
})

t.test('streams go both ways at once, with trailers', async t => {
  const client = await openHttp2(t, gateway, { to, authorization })
  const stream = client.begin({
    ':method': 'POST',
    ':path': '/echo',
    te: 'trailers',
    'content-type': 'application/grpc',
  })
  const answer = answerOf(stream)
  await once(stream, 'response')
  let received = ''
  stream.on('data', (chunk: Buffer) => {
    received += chunk
  })
  for (const word of ['one', 'two', 'three']) {
    stream.write(word)
    await eventually(
      () => received.endsWith(word),
      hasCome => hasCome,
    )
  }
  stream.end()
  t.match((await answer).trailers, { 'grpc-status': '0', 'grpc-message': 'fine' })
  t.equal(origin.seen.at(-1)?.headers['te'], 'trailers', 'gRPC servers demand it')
})

t.test('a status of gRPC in the head ends the stream there, unless a body follows', async t => {
  const client = await openHttp2(t, gateway, { to, authorization })
  const stream = client.begin({ ':method': 'POST', ':path': '/trailers-only' })
  stream.end()
  const [, flags] = await once(stream, 'response')
  t.equal(flags & 1, 1, 'END_STREAM')
  t.match(await client.send({ ':path': '/status-first' }), { body: 'a body all the same' })
})

t.test('large bodies pass both ways unchanged', async t => {
  const client = await openHttp2(t, gateway, { to, authorization })
  const bytes = randomBytes(3_000_000)
  const stream = client.begin({ ':method': 'POST', ':path': '/echo' })
  stream.end(bytes)
  const hash = createHash('sha256')
  for await (const piece of stream) hash.update(piece)
  t.equal(hash.digest('hex'), createHash('sha256').update(bytes).digest('hex'))
})

t.test('an answer that its upstream breaks off is reset, and others on the connection are not', async t => {
  const client = await openHttp2(t, gateway, { to, authorization })
  const [broken, whole] = await Promise.all([client.send({ ':path': '/broken' }), client.send()])
  t.match(broken, { status: 200, reset: 2 })
  t.match(whole, { status: 200, reset: 0 })
})

t.test('T20 an authority that is not that of the tunnel is 421, and the connection goes on', async t => {
  const client = await openHttp2(t, gateway, { to, authorization })
  const count = origin.seen.length
  const others = [
    { ':authority': 'other.test' },
    { ':authority': 'idp.test' },
    { ':scheme': 'http' },
    { ':authority': undefined, host: 'other.test' },
  ]
  for (const fields of others) {
    const { status, body } = await client.send(fields)
    t.strictSame([status, problem(body)], [421, 'misdirected'], JSON.stringify(fields))
  }
  const two = await client.send({ host: 'other.test' })
  t.strictSame([two.status, problem(two.body)], [400, 'invalid_request'], 'two hosts')
  t.equal((await client.send({ host: to })).status, 200)
  t.equal(origin.seen.length, count + 1)
})

t.test('T20 heads are checked as those of HTTP/1.1 are', async t => {
  const client = await openHttp2(t, gateway, { to, authorization })
  const count = origin.seen.length
  const cases = [
    [{ ':method': 'TRACE' }, 405, 'method_not_allowed'],
    [{ ':path': '*', ':method': 'OPTIONS' }, 400, 'invalid_target'],
    [{ ':path': '/a/../b' }, 400, 'invalid_target'],
    [{ content_length: '5' }, 400, 'invalid_request'],
    [{ 'gateway-authorization': `Bearer ${token}` }, 400, 'token_misplaced'],
    [{ 'x-key': token }, 400, 'token_misplaced'],
    [{ via: '1.1 agent-gateway' }, 508, 'loop_detected'],
    [{ expect: 'the-unexpected' }, 417, 'expectation_failed'],
  ] as const
  for (const [fields, status, code] of cases) {
    const answer = await client.send(fields)
    t.strictSame([answer.status, answer.headers['gateway-error']], [status, code], JSON.stringify(fields).slice(0, 40))
  }
  t.equal(origin.seen.length, count)
})

t.test('a client that waits for 100 gets it when its body is wanted, and early hints are passed on', async t => {
  const client = await openHttp2(t, gateway, { to, authorization })
  const hints: unknown[] = []
  const stream = client.begin({ ':method': 'POST', ':path': '/hints', expect: '100-continue' })
  stream.on('headers', given => hints.push(given[':status'], given['link']))
  const answer = answerOf(stream)
  await once(stream, 'continue')
  stream.end('the body')
  t.equal((await answer).body, 'the body')
  t.strictSame(hints, [100, undefined, 103, `<${origin.url}/style.css>; rel=preload`])
})

t.test('CONNECT in a tunnel is 405, and WebSockets over HTTP/2 are not offered', async t => {
  const client = await openHttp2(t, gateway, { to, authorization })
  const stream = client.session.request({ ':method': 'CONNECT', ':authority': to })
  t.match(await answerOf(stream), { status: 405, headers: { 'gateway-error': 'method_not_allowed' } })
  t.notOk(client.session.remoteSettings.enableConnectProtocol)
})

t.test(
  'a request that is refused before its body has come is answered at once, and the rest is not wanted',
  async t => {
    const client = await openHttp2(t, gateway, { to, authorization })
    const stream = client.begin({ ':method': 'POST', ':authority': 'other.test' })
    t.match(await answerOf(stream), { status: 421, reset: 0 })
  },
)

t.test('hosts that are not named speak HTTP/1.1', async t => {
  const [host, port] = ['other.test', to.split(':')[1]]
  const tls = { ALPNProtocols: ['h2', 'http/1.1'] }
  const { secure } = await openSecure(t, gateway, { to: `${host}:${port}`, authorization, tls })
  t.equal(secure.alpnProtocol, 'http/1.1')
})

t.test('a client may choose HTTP/1.1 for a host that is named', async t => {
  const client = await openSecure(t, gateway, { to, authorization })
  client.write(`GET / HTTP/1.1\r\nHost: ${to}\r\nConnection: close\r\n\r\n`)
  t.match(await client.closed(), /^HTTP\/1\.1 200 .*hello over h2/s)
})

t.test('more streams than MaxInFlight are 429 over two connections, and refused on one', async t => {
  const clients = [
    await openHttp2(t, gateway, { to, authorization }),
    await openHttp2(t, gateway, { to, authorization }),
  ]
  t.equal(clients[0]?.session.remoteSettings.maxConcurrentStreams, 8)
  const first = silent.length
  const streams = Array.from({ length: 8 }, () => clients[0]?.begin({ ':path': '/silent' }))
  for (const stream of streams) stream?.on('error', () => {})
  await eventually(
    () => silent.length - first,
    count => count === 8,
  )
  t.match(await clients[1]?.send(), { status: 429, headers: { 'gateway-error': 'agent_busy' } })
  for (const stream of streams) stream?.close(8)
  await eventually(
    async () => (await clients[1]?.send())?.status,
    status => status === 200,
  )
})

t.test('T46 a stream of a revoked agent is told so, and its connection is closed', async t => {
  const bot = await gateway.agent()
  const client = await openHttp2(t, gateway, { to, authorization: `Bearer ${bot.token}` })
  const other = await openHttp2(t, gateway, { to, authorization })
  const count = silent.length
  const answer = client.send({ ':path': '/silent' })
  await eventually(
    () => silent.length,
    length => length > count,
  )
  const closed = once(client.session, 'close')
  await gateway.manage('POST', `/agents/${bot.id}/revoke`)
  t.match(await answer, { status: 403, headers: { 'gateway-error': 'agent_revoked' } })
  await closed
  t.equal((await other.send()).status, 200, 'others go on')
})

t.test('T46 a stream under way whose answer has begun is reset when its key is revoked', async t => {
  const key = await newKey()
  const client = await openHttp2(t, gateway, { to, authorization: `Bearer ${key.key}` })
  const stream = client.begin({ ':method': 'POST', ':path': '/echo' })
  const answer = answerOf(stream)
  await once(stream, 'response')
  const seen = origin.seen.at(-1)
  const closed = once(client.session, 'close')
  await gateway.manage('DELETE', `/keys/${key.id}`)
  await eventually(
    () => seen?.closed,
    code => code !== undefined,
  )
  t.not((await answer).reset, 0)
  await closed
})

t.test('a held stream gets the answer of the upstream once it is approved', async t => {
  const held = await gateway.newBot()
  const client = await openHttp2(t, gateway, { to, authorization: `Bearer ${held.token}` })
  const answer = client.send({ ':method': 'POST', ':path': '/held' }, 'the body')
  const [item] = await gateway.waiting(held, 1)
  await gateway.approve(item!.id)
  t.match(await answer, { status: 200, body: /^hello over/, reset: 0 })
})
