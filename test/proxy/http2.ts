import { createHash, randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { constants } from 'node:http2'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'
import t from 'tap'
import { createClock } from '../fixtures/clock.ts'
import { endStream, frames, sendGoaway, sendHead, sendReset, startFrames } from '../fixtures/frames-http2.ts'
import { type GatewaySetup, startGateway } from '../fixtures/gateway.ts'
import { certFile, keyFile, startHttp2 } from '../fixtures/origin-http2.ts'
import { openRaw } from '../fixtures/raw.ts'

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise(setImmediate)
}

async function start(t: Test, proxy: object = {}, more: GatewaySetup = {}) {
  const config = { ...more.config, Proxy: { CaFile: certFile, Http2Hosts: ['*.test'], ...proxy } }
  const gateway = await startGateway(t, { lookup: async () => ['127.0.0.1'], ...more, config })
  const { token } = await gateway.agent()
  return { gateway, token, send: (url: string, init?: RequestInit) => gateway.proxy(token, url, init) }
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
const shared = await start(t, {}, { config: { System: { CircuitBreaker: { Failures: 100 } } } })

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

t.test('hosts that are not named are spoken to in HTTP/1.1, and so are those that offer nothing else', async t => {
  const both = await startHttp2(t)
  const { send } = await start(t, { Http2Hosts: ['other.test'] })
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
  t.strictSame(answer.headers.getSetCookie(), ['a=1', 'b=2'])
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
    /^HTTP\/1\.1 103 Early Hints\r\nlink: <\/a\.css>; rel=preload\r\n\r\nHTTP\/1\.1 200 OK\r\n/i,
  )
})

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
  REFUSED_STREAM: constants.NGHTTP2_REFUSED_STREAM,
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
  for (const [name, number] of resets.filter(([name]) => name !== 'NO_ERROR')) {
    code = number
    const answer = await send(origin.url)
    await t.rejects(answer.text(), name)
  }
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

t.test('GOAWAY before the answer is 502, and is not sent again; the next request gets a new connection', async t => {
  let requests = 0
  const origin = await startFrames(t, (send, id) => {
    requests += 1
    if (requests === 1) sendGoaway(send, 0, constants.NGHTTP2_NO_ERROR)
    else {
      sendHead(send, id)
      send(frames.data, endStream, id, Buffer.from('whole'))
    }
  })
  const { send } = shared
  t.equal((await send(origin.url)).status, 502)
  t.equal(await (await send(origin.url)).text(), 'whole')
  t.strictSame([requests, origin.connections()], [2, 2])
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
  const { send } = await start(t, { MaxConnectionsPerOrigin: 3 })
  const answers = await Promise.all(Array.from({ length: 40 }, async () => (await send(origin.url)).text()))
  t.strictSame(answers, Array(40).fill('ok'))
  t.ok(origin.connections.h2 <= 3 && most <= 6, `${origin.connections.h2} connections, ${most} streams`)
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

t.test('limits of the body count what is sent', async t => {
  const origin = await startHttp2(t, stream => {
    stream.respond({ ':status': 200 })
    stream.end(Buffer.alloc(500_000))
  })
  const { send } = await start(t, { MaxRequestBytes: 100_000 })
  const small = await send(`${origin.url}/`, { method: 'POST', body: randomBytes(1_000) })
  t.equal((await small.arrayBuffer()).byteLength, 500_000, 'a large answer to a small request is no large request')

  const stuck = await startHttp2(t, () => {})
  const chunks = new ReadableStream({ pull: controller => controller.enqueue(new Uint8Array(20_000)) })
  const large = await send(`${stuck.url}/`, { method: 'POST', body: chunks, duplex: 'half' } as RequestInit)
  t.strictSame([large.status, large.headers.get('gateway-error')], [413, 'body_too_large'])
  await until(() => stuck.seen[0]?.closed !== undefined)
  t.equal(stuck.seen[0]?.aborted, true)
})

t.test('an upstream that does not answer, or stops midway, is cut off in time', async t => {
  const origin = await startHttp2(t, (stream, _, headers) => {
    if (headers[':path'] !== '/half') return
    stream.respond({ ':status': 200 })
    stream.write('begun')
  })
  const { send } = await start(t, { HeadersTimeoutSeconds: 1, IdleTimeoutSeconds: 1 })
  const [silent, half] = await Promise.all([send(`${origin.url}/`), send(`${origin.url}/half`)])
  t.strictSame([silent.status, silent.headers.get('gateway-error')], [504, 'upstream_timeout'])
  await t.rejects(half.text())
  await until(() => origin.seen.every(({ closed }) => closed !== undefined))
})

t.test('T04 a name that points elsewhere is connected to anew, however busy its connection is', async t => {
  const clock = createClock()
  const origin = await startHttp2(t, (stream, _, headers) => {
    stream.respond({ ':status': 200 })
    if (headers[':path'] === '/long') stream.write('begun')
    else stream.end('ok')
  })
  let address = '127.0.0.1'
  const { send } = await start(t, {}, { clock, lookup: async () => [address] })
  const long = await send(`${origin.url}/long`)
  t.equal(await (await send(origin.url)).text(), 'ok')
  address = '127.0.0.2'
  clock.advance(31_000)
  t.equal((await send(origin.url)).status, 502, 'nobody is there')
  t.equal(origin.connections.h2, 1)
  t.equal(origin.seen[0]?.closed, undefined, 'what is under way goes on')
  await long.body?.cancel()
})
