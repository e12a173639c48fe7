import { createHash, randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { request } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import type { Writable } from 'node:stream'
import t, { type Test } from 'tap'
import { createClock } from '../fixtures/clock.ts'
import { allowAll } from '../fixtures/gateway.ts'
import { startHttp2Gateway } from '../fixtures/gateway-http2.ts'
import { certFile, keyFile, startHttp2 } from '../fixtures/origin-http2.ts'
import { openRaw } from '../fixtures/raw.ts'

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise(setImmediate)
}

/** Resolves when a count has stood still for 200 ms. */
async function settled(count: () => number): Promise<void> {
  let before = -1
  while (before !== count() || before === 0) {
    before = count()
    await new Promise(resolve => setTimeout(resolve, 200))
  }
}

/** An upstream that has never heard of HTTP/2. */
async function startOld(t: Test) {
  let connections = 0
  const server = createServer({ cert: readFileSync(certFile), key: readFileSync(keyFile) }, (_req, res) => {
    res.end('hello over http/1.1')
  })
  server.on('secureConnection', () => (connections += 1))
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return { url: `https://idp.test:${(server.address() as AddressInfo).port}`, connections: () => connections }
}

/** Most tests need no gateway of their own: each has an upstream of its own. */
const shared = await startHttp2Gateway(t)

t.test('an upstream that offers HTTP/2 is spoken to in it, on one connection for many requests at a time', async t => {
  const waiting: (() => void)[] = []
  const origin = await startHttp2(t, (stream, _, headers) => {
    const finish = () => {
      stream.respond({ ':status': 200 })
      stream.end('late')
    }
    if (headers[':path'] === '/first') finish()
    else waiting.push(finish)
  })
  const { send } = shared
  t.equal(await (await send(`${origin.url}/first`)).text(), 'late')
  const calls = Array.from({ length: 20 }, (_, index) => send(`${origin.url}/${index}`))
  await until(() => waiting.length === 20)
  for (const answer of waiting) answer()
  for (const call of calls) t.equal(await (await call).text(), 'late')
  t.strictSame(origin.connections, { h2: 1, http1: 0 })
})

t.test('a burst of requests to an upstream that was not called before needs one connection', async t => {
  const origin = await startHttp2(t)
  const answers = await Promise.all(Array.from({ length: 30 }, async () => (await shared.send(origin.url)).text()))
  t.strictSame(answers, Array(30).fill('hello over h2'))
  t.strictSame(origin.connections, { h2: 1, http1: 0 })

  const old = await startOld(t)
  const texts = await Promise.all(Array.from({ length: 30 }, async () => (await shared.send(old.url)).text()))
  t.strictSame(texts, Array(30).fill('hello over http/1.1'), 'nor do they wait for each other where it is not spoken')
  t.ok(old.connections() > 1)

  const gone = await Promise.all(
    Array.from({ length: 30 }, async () => (await shared.send('https://idp.test:1/')).status),
  )
  t.strictSame(gone, Array(30).fill(502))
})

t.test('hosts that are not named are spoken to in HTTP/1.1, and so are those that offer nothing else', async t => {
  const both = await startHttp2(t)
  const { send } = await startHttp2Gateway(t, { Http2Hosts: ['other.test'] })
  t.equal(await (await send(both.url)).text(), 'hello over http/1.1')
  t.strictSame(both.connections, { h2: 0, http1: 1 })

  const old = await startOld(t)
  const willing = shared
  const answers = await Promise.all([1, 2, 3].map(async () => (await willing.send(old.url)).text()))
  t.strictSame(answers, Array(3).fill('hello over http/1.1'))
  t.equal(await (await willing.send(old.url)).text(), 'hello over http/1.1')
  t.ok(old.connections() <= 3, 'and its connections are used again')
})

t.test('method, target, fields and body go out and come back as over HTTP/1.1', async t => {
  const sent = randomBytes(3_000_000)
  const back = randomBytes(2_000_000)
  const origin = await startHttp2(t, stream => {
    stream.on('end', () => {
      stream.respond({ ':status': 207, 'x-answer': 'caf\xe9', 'set-cookie': ['a=1', 'b=2'], 'gateway-error': 'forged' })
      stream.end(back)
    })
  })
  const { gateway, token } = shared
  const answer = await gateway.proxy(token, `${origin.url}/a%2Fb?x=1&x=2`, {
    method: 'PUT',
    headers: {
      'Content-Type': 'application/octet-stream',
      'X-Asked': 'caf\xe9',
      Connection: 'X-Hop',
      'X-Hop': '1',
    },
    body: sent,
  })
  t.equal(answer.status, 207)
  t.equal(answer.statusText, 'Multi-Status')
  t.equal(answer.headers.get('x-answer'), 'caf\xe9')
  t.strictSame(answer.headers.getSetCookie(), [`a=1; Path=/proxy/${origin.url}`, `b=2; Path=/proxy/${origin.url}`])
  t.equal(answer.headers.get('gateway-error'), null)
  t.ok(Buffer.from(await answer.arrayBuffer()).equals(back))
  const [seen] = origin.seen
  t.match(seen?.headers, {
    ':method': 'PUT',
    ':path': '/a%2Fb?x=1&x=2',
    ':scheme': 'https',
    ':authority': origin.url.slice('https://'.length),
    'content-type': 'application/octet-stream',
    'content-length': '3000000',
    'x-asked': 'caf\xe9',
    via: '1.1 agent-gateway',
  })
  for (const name of ['gateway-authorization', 'connection', 'expect', 'host'])
    t.notOk(name in (seen?.headers ?? {}), name)
  t.equal(seen?.sha256, createHash('sha256').update(sent).digest('hex'))
})

t.test('HEAD, an empty answer, trailers and early hints', async t => {
  const origin = await startHttp2(t, (stream, _, headers) => {
    if (headers[':path'] === '/trailers') {
      stream.respond({ ':status': 200 }, { waitForTrailers: true })
      stream.on('wantTrailers', () => stream.sendTrailers({ 'x-sum': 'abc' }))
      stream.end('body')
    } else if (headers[':path'] === '/hints') {
      stream.additionalHeaders({ ':status': 103, link: '</a.css>; rel=preload' })
      stream.respond({ ':status': 200, 'content-length': 2 })
      stream.end('ok')
    } else if (headers[':method'] === 'HEAD')
      stream.respond({ ':status': 200, 'content-length': 500 }, { endStream: true })
    else stream.respond({ ':status': 204 }, { endStream: true })
  })
  const { gateway, token, send } = shared
  const head = await send(`${origin.url}/`, { method: 'HEAD' })
  t.strictSame([head.status, head.headers.get('content-length'), await head.text()], [200, '500', ''])
  t.equal((await send(`${origin.url}/`, { method: 'DELETE' })).status, 204)
  const raw = async (path: string) => {
    const client = await openRaw(t, gateway.port)
    client.write(`GET /proxy/${origin.url}${path} HTTP/1.1\r\nHost: g\r\nGateway-Authorization: Bearer ${token}\r\n`)
    client.write('Connection: close\r\n\r\n')
    return client.closed()
  }
  t.match(await raw('/trailers'), /\r\n4\r\nbody\r\n0\r\nx-sum: abc\r\n\r\n$/)
  t.match(
    await raw('/hints'),
    /^HTTP\/1\.1 103 Early Hints\r\nlink: <\/proxy\/https:\/\/[^>]*\/a\.css>; rel=preload\r\n\r\nHTTP\/1\.1 200 OK\r\n/i,
  )
})

t.test('trailers behind a body that is taken slowly lose none of it', async t => {
  const body = randomBytes(3_000_000)
  const origin = await startHttp2(t, stream => {
    stream.respond({ ':status': 200 }, { waitForTrailers: true })
    stream.on('wantTrailers', () => stream.sendTrailers({ 'x-sum': 'abc' }))
    stream.end(body)
  })
  const { send } = shared
  const hash = createHash('sha256')
  for await (const chunk of (await send(origin.url)).body ?? []) {
    hash.update(chunk)
    await new Promise(setImmediate)
  }
  t.equal(hash.digest('hex'), createHash('sha256').update(body).digest('hex'))
})

t.test('a slow side holds the other one back, and the other streams of the connection go on', async t => {
  let written = 0
  const chunk = Buffer.alloc(65_536)
  const pour = (to: Writable) => {
    const more = () => {
      while (written < 268_435_456 && !to.destroyed) {
        written += chunk.length
        if (!to.write(chunk)) return
      }
    }
    to.on('drain', more).on('error', () => {})
    more()
  }
  const origin = await startHttp2(t, (stream, _, headers) => {
    if (headers[':path'] === '/up') stream.removeAllListeners('data').pause()
    else stream.respond({ ':status': 200 })
    if (headers[':path'] === '/down') pour(stream)
    else if (headers[':path'] === '/') stream.end('quick')
  })
  const { gateway, token, send } = shared
  const down = await openRaw(t, gateway.port)
  down.socket.pause()
  down.write(`GET /proxy/${origin.url}/down HTTP/1.1\r\nHost: g\r\nGateway-Authorization: Bearer ${token}\r\n\r\n`)
  await settled(() => written)
  t.ok(written < 64 * 1_048_576, `${written} bytes had left the upstream`)
  t.equal(await (await send(origin.url)).text(), 'quick')
  down.socket.destroy()

  written = 0
  const headers = { 'Gateway-Authorization': `Bearer ${token}` }
  const up = request(`${gateway.url}/proxy/${origin.url}/up`, { method: 'POST', headers })
  pour(up)
  await settled(() => written)
  t.ok(written < 64 * 1_048_576, `${written} bytes had left the client`)
  t.equal(await (await send(origin.url)).text(), 'quick')
  up.destroy()
  t.equal(origin.connections.h2, 1)
})

t.test('an upstream that allows few streams gets no more, on further connections', async t => {
  let open = 0
  let most = 0
  const origin = await startHttp2(
    t,
    stream => {
      open += 1
      most = Math.max(most, open)
      stream.on('close', () => (open -= 1))
      setImmediate(() => {
        stream.respond({ ':status': 200 })
        stream.end('ok')
      })
    },
    { settings: { maxConcurrentStreams: 2 } },
  )
  const { send } = await startHttp2Gateway(t, { MaxConnectionsPerOrigin: 3 })
  const answers = await Promise.all(Array.from({ length: 40 }, async () => (await send(origin.url)).text()))
  t.strictSame(answers, Array(40).fill('ok'))
  t.ok(origin.connections.h2 <= 3 && most <= 6, `${origin.connections.h2} connections, ${most} streams`)
})

t.test('limits of the body count what is sent', async t => {
  const origin = await startHttp2(t, stream => {
    stream.respond({ ':status': 200 })
    stream.end(Buffer.alloc(500_000))
  })
  const { send } = await startHttp2Gateway(t, { MaxRequestBytes: 100_000 })
  const small = await send(`${origin.url}/`, { method: 'POST', body: randomBytes(1_000) })
  t.equal((await small.arrayBuffer()).byteLength, 500_000, 'a large answer to a small request is no large request')

  const stuck = await startHttp2(t, () => {})
  const chunks = new ReadableStream({ pull: controller => controller.enqueue(new Uint8Array(20_000)) })
  const large = await send(`${stuck.url}/`, { method: 'POST', body: chunks, duplex: 'half' } as RequestInit)
  t.strictSame([large.status, large.headers.get('gateway-error')], [413, 'body_too_large'])
  await until(() => stuck.seen[0]?.closed !== undefined)
  t.equal(stuck.seen[0]?.aborted, true)
})

t.test('T04 a name that points elsewhere is connected to anew, however busy its connection is', async t => {
  const clock = createClock()
  const origin = await startHttp2(t, (stream, _, headers) => {
    stream.respond({ ':status': 200 })
    if (headers[':path'] === '/long') stream.write('begun')
    else stream.end('ok')
  })
  let address = '127.0.0.1'
  const { send } = await startHttp2Gateway(t, {}, { clock, lookup: async () => [address] })
  const long = await send(`${origin.url}/long`)
  t.equal(await (await send(origin.url)).text(), 'ok')
  address = '127.0.0.2'
  clock.advance(31_000)
  t.equal((await send(origin.url)).status, 502, 'nobody is there')
  t.equal(origin.connections.h2, 1)
  t.equal(origin.seen[0]?.closed, undefined, 'what is under way goes on')
  await long.body?.cancel()
})

t.test('what a person approves goes out over a connection of its own, in HTTP/2 as well', async t => {
  const origin = await startHttp2(t)
  const config = { Policies: [allowAll, { name: 'ask', default: 'Hitl' }] }
  const { gateway } = await startHttp2Gateway(t, {}, { config })
  const { token } = await gateway.agent({ policyName: 'ask' })
  await gateway.proxy((await gateway.agent()).token, origin.url)
  const held = await gateway.proxy(token, origin.url)
  t.equal(held.status, 202)
  const approved = await gateway.manage('POST', `/hitl/${held.headers.get('gateway-hitl-id')}/approve`, {})
  t.strictSame([approved.status, approved.text], [200, 'hello over h2'])
  t.strictSame(origin.connections, { h2: 2, http1: 0 })
})

t.test('a body that a rule has read is sent as it was read', async t => {
  const origin = await startHttp2(t, stream => {
    stream.on('end', () => {
      stream.respond({ ':status': 200 })
      stream.end('taken')
    })
  })
  const { gateway } = shared
  const conditions = [{ field: 'input.body.kind', operator: 'eq', value: 'bad' }]
  await gateway.policy({ name: 'reads', default: 'Allow', rules: [{ name: 'bad', effect: 'Deny', conditions }] })
  const { token } = await gateway.agent({ policyName: 'reads' })
  const headers = { 'Content-Type': 'application/json' }
  const send = (body: string) => gateway.proxy(token, origin.url, { method: 'POST', headers, body })
  t.equal((await send('{"kind": "bad"}')).status, 403)
  t.equal(await (await send('{ "kind":  "good" }')).text(), 'taken')
  t.match(origin.seen, [{ body: '{ "kind":  "good" }', headers: { 'content-length': '19' } }])
  t.equal(origin.seen.length, 1)
})
