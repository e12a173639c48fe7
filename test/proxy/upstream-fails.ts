/** Threats T21, T33 of SECURITY.md. */
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import t, { type Test } from 'tap'
import { isUndici } from '../fixtures/engine.ts'
import { eventually, startGateway } from '../fixtures/gateway.ts'
import { startOrigin } from '../fixtures/origin.ts'
import { openRaw, startRawServer } from '../fixtures/raw.ts'

const gateway = await startGateway(t, {
  config: {
    System: { CircuitBreaker: { Failures: 100 } },
    Proxy: { HeadersTimeoutSeconds: 1, IdleTimeoutSeconds: 1, ConnectTimeoutSeconds: 1 },
  },
  lookup: async name => {
    if (name === 'silent.example') return new Promise(() => {})
    throw Object.assign(new Error('not found'), { code: 'ENOTFOUND' })
  },
})
const { token } = await gateway.agent()

async function fails(t: Test, target: string, status: number, code: string): Promise<void> {
  const answer = await gateway.proxy(token, target)
  t.equal(answer.status, status)
  t.equal(answer.headers.get('gateway-error'), code)
  t.match(await answer.json(), { status, code, requestId: String })
}

t.test('an upstream that refuses the connection is 502', async t => {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  await fails(t, `http://127.0.0.1:${port}/`, 502, 'upstream_failed')
})

t.test('a name that does not resolve is 502, and the answer does not say why', async t => {
  await fails(t, 'http://nowhere.example/', 502, 'upstream_failed')
})

t.test('an upstream that never answers is 504, and its connection is closed', async t => {
  const origin = await startOrigin(t, () => {})
  await fails(t, `${origin.url}/`, 504, 'upstream_timeout')
  for (const socket of origin.sockets) await once(socket, 'close')
  t.equal(origin.seen.length, 1, 'it was asked once')
})

const malformed: readonly (readonly [string, string])[] = [
  ['closes at once', ''],
  ['does not speak HTTP', 'hello\r\n\r\n'],
  ['sends two different lengths', 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nabc'],
  ['sends a length and chunks', 'HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n'],
  ['puts a NUL into a header', 'HTTP/1.1 200 OK\r\nX: a\0b\r\nContent-Length: 0\r\n\r\n'],
  ['switches protocols unasked', 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n'],
  ['has a status that HTTP has not', 'HTTP/1.1 099 Very odd\r\nContent-Length: 0\r\n\r\n'],
  ['sends endless headers', `HTTP/1.1 200 OK\r\n${`X-Pad: ${'a'.repeat(1_000)}\r\n`.repeat(100)}\r\n`],
  ['sends interim answers without end', `${'HTTP/1.1 102 Processing\r\n\r\n'.repeat(100)}HTTP/1.1 200 OK\r\n\r\n`],
]

for (const [what, bytes] of malformed) {
  t.test(`an upstream that ${what} is 502`, async t => {
    const server = await startRawServer(t, socket => {
      socket.once('data', () => socket.end(bytes))
    })
    await fails(t, `${server.url}/`, 502, 'upstream_failed')
  })
}

/** The head and what is wrong come in one read: nothing has been sent to the client. */
const malformedBodies: readonly (readonly [string, string])[] = [
  ['no size of a chunk', 'Transfer-Encoding: chunked\r\n\r\nZZ\r\nbad'],
  ['a chunk, and then none', 'Transfer-Encoding: chunked\r\n\r\n4\r\ngood\r\nZZ\r\nbad'],
  ['a chunk that is longer than it says', 'Transfer-Encoding: chunked\r\n\r\n2\r\ngood\r\n'],
]

for (const [what, bytes] of malformedBodies) {
  t.test(`an answer with ${what} in the read that brought its head is 502, and the connection goes on`, async t => {
    const server = await startRawServer(t, socket => {
      socket.once('data', () => socket.write(`HTTP/1.1 200 Fine\r\nX-Upstream: yes\r\n${bytes}`))
    })
    const raw = await openRaw(t, gateway.port)
    const request = (url: string) =>
      `GET /proxy/${url}/ HTTP/1.1\r\nHost: x\r\nGateway-Authorization: Bearer ${token}\r\n`
    if (isUndici) {
      // It reports what is malformed later than what came before.
      raw.write(`${request(server.url)}Connection: close\r\n\r\n`)
      const text = await raw.closed()
      t.notMatch(text, /\r\n0\r\n\r\n$/, 'no last chunk claims that this was all')
      return
    }
    raw.write(`${request(server.url)}\r\n`)
    const text = await raw.until(/\}$/)
    t.match(text, /^HTTP\/1\.1 502 Upstream failed\r\n/)
    t.match(text, /^Gateway-Error: upstream_failed\r$/m)
    t.notMatch(text, /x-upstream|transfer-encoding|good/i)
    const origin = await startOrigin(t)
    raw.write(`${request(origin.url)}Connection: close\r\n\r\n`)
    t.match((await raw.closed()).slice(text.length), /^HTTP\/1\.1 200 OK\r\n.*hello from upstream/s)
    const line = await eventually(
      () => gateway.log.findLast(({ message, origin }) => message === 'exchange' && origin === server.url),
      found => found !== undefined,
    )
    t.match(line, { status: 502, refusal: 'upstream_failed' })
  })
}

const broken: readonly (readonly [string, string])[] = [
  ['of announced length', 'HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nonly this'],
  ['in chunks', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nonly this\r\n'],
]

for (const [kind, bytes] of broken) {
  t.test(`an answer ${kind} that breaks off midway breaks off visibly`, async t => {
    const server = await startRawServer(t, socket => {
      socket.once('data', () => socket.end(bytes))
    })
    const raw = await openRaw(t, gateway.port)
    raw.write(`GET /proxy/${server.url}/ HTTP/1.1\r\nHost: x\r\nGateway-Authorization: Bearer ${token}\r\n\r\n`)
    const received = await raw.closed()
    t.match(received, /^HTTP\/1.1 200 OK/)
    t.match(received, /only this/)
    t.notMatch(received, /\r\n0\r\n\r\n$/, 'no last chunk claims that this was all')
  })
}

t.test('an event stream may be silent for longer than another answer', async t => {
  const origin = await startOrigin(t, (_req, res) => {
    res.writeHead(200, { 'Content-Type': 'Text/Event-Stream; charset=utf-8' })
    res.write('data: one\n\n')
    setTimeout(() => res.end('data: two\n\n'), 1_400)
  })
  const answer = await gateway.proxy(token, `${origin.url}/`)
  t.equal(await answer.text(), 'data: one\n\ndata: two\n\n')
})

t.test('odd statuses and reason phrases are passed on', async t => {
  for (const line of ['599 Very odd', '600 Odder', '999 Request denied']) {
    const server = await startRawServer(t, socket => {
      socket.once('data', () => socket.end(`HTTP/1.1 ${line}\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok`))
    })
    const raw = await openRaw(t, gateway.port)
    raw.write(
      `GET /proxy/${server.url}/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\nGateway-Authorization: Bearer ${token}\r\n\r\n`,
    )
    t.match(await raw.closed(), new RegExp(`^HTTP/1.1 ${line}\\r\\n[^]*ok$`))
  }
})

t.test('nothing was retried and redirects were not followed', async t => {
  const origin = await startOrigin(t, (_req, res) => {
    res.writeHead(302, { Location: 'http://169.254.169.254/' }).end()
  })
  const answer = await gateway.proxy(token, `${origin.url}/moved`)
  t.equal(answer.status, 302)
  t.equal(answer.headers.get('location'), '/proxy/http://169.254.169.254/')
  t.equal(origin.seen.length, 1)
})
