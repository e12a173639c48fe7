import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { PassThrough, Readable } from 'node:stream'
import t, { type Test } from 'tap'
import { refuse } from '../../src/base/refusals.ts'
import { jsonReply, sendRefusal, sendReply } from '../../src/http/respond.ts'
import { ownVersion } from '../../src/runtime/version.ts'
import { openRaw } from '../fixtures/raw.ts'

async function serve(t: Test, answer: (res: ServerResponse) => unknown): Promise<number> {
  const server = createServer({ optimizeEmptyRequests: true }, (_req, res) => void answer(res))
  // Nothing asks for the body unless the answer does.
  server.on('checkContinue', (_req, res) => void answer(res))
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return (server.address() as AddressInfo).port
}

const refused = (res: ServerResponse) => sendRefusal(res, refuse('policy_denied'), 'r-1')

t.test('a refusal of a request without a body starts no timer that would close its connection', async t => {
  const timers = () => process.getActiveResourcesInfo().filter(name => name === 'Timeout').length
  let more: number | undefined
  const port = await serve(t, res => {
    const before = timers()
    refused(res)
    more = timers() - before
  })
  await (await fetch(`http://127.0.0.1:${port}/`)).text()
  t.equal(more, 0)
})

t.test('a refusal is a problem document, named in a header, never cached', async t => {
  const errors = [{ field: 'a', message: 'b' }]
  const extras = { headers: ['Retry-After', '5'], errors, members: { more: true } }
  const port = await serve(t, res => sendRefusal(res, refuse('rate_limited', 'slow down', extras), 'r-1'))
  const res = await fetch(`http://127.0.0.1:${port}/`)
  t.equal(res.status, 429)
  t.match(Object.fromEntries(res.headers), {
    'content-type': 'application/problem+json',
    'gateway-error': 'rate_limited',
    'gateway-version': ownVersion(),
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    'retry-after': '5',
  })
  t.strictSame(await res.json(), {
    type: 'error',
    title: 'Rate limit exceeded',
    status: 429,
    code: 'rate_limited',
    detail: 'slow down',
    message: 'slow down',
    error: { type: 'rate_limit_error', code: 'rate_limited', message: 'slow down' },
    requestId: 'r-1',
    errors,
    more: true,
  })
})

t.test('a 401 is the plain text of the specification', async t => {
  const port = await serve(t, res => sendRefusal(res, refuse('unauthenticated'), 'r-1'))
  const res = await fetch(`http://127.0.0.1:${port}/`)
  t.equal(res.status, 401)
  t.equal(await res.text(), 'Missing or invalid authentication')
  t.match(Object.fromEntries(res.headers), { 'www-authenticate': 'Bearer', 'content-type': 'text/plain' })
})

t.test('a 401 is a problem document for a client that asks for JSON, with the same challenge', async t => {
  const port = await serve(t, res => sendRefusal(res, refuse('unauthenticated', 'do this'), 'r-1'))
  const bodyFor = async (Accept: string) => {
    const res = await fetch(`http://127.0.0.1:${port}/`, { headers: { Accept } })
    t.match(Object.fromEntries(res.headers), { 'www-authenticate': 'Bearer', 'gateway-error': 'unauthenticated' })
    return res.headers.get('content-type') === 'application/problem+json'
      ? ((await res.json()) as { detail: string }).detail
      : res.text()
  }
  for (const accept of ['application/json', 'application/json, text/plain, */*', 'application/vnd.github.v3+json']) {
    t.equal(await bodyFor(accept), 'do this', accept)
  }
  for (const accept of ['*/*', 'text/html,application/xml;q=0.9,*/*;q=0.8', 'application/json;q=0']) {
    t.equal(await bodyFor(accept), 'Missing or invalid authentication', accept)
  }
})

t.test('after headers are out a refusal can only cut the connection', async t => {
  const port = await serve(t, res => {
    res.writeHead(200, { 'Content-Length': '10' })
    res.write('half', () => refused(res))
  })
  await t.rejects(fetch(`http://127.0.0.1:${port}/`).then(res => res.text()))
})

t.test('a short body that nobody read leaves the connection open', async t => {
  const client = await openRaw(t, await serve(t, refused))
  client.write('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhelloGET / HTTP/1.1\r\nHost: x\r\n\r\n')
  const text = await client.until(/HTTP\/1\.1 403.*HTTP\/1\.1 403.*\}/s)
  t.notMatch(text, /Connection: close/i)
})

t.test('a long body that nobody read: the answer arrives whole, then the connection closes', async t => {
  const client = await openRaw(t, await serve(t, refused))
  client.write('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000\r\n\r\n')
  client.write(Buffer.alloc(1_000_000))
  const text = await client.closed()
  t.match(text, /^HTTP\/1\.1 403 .*\r\n/)
  t.match(text, /Connection: close/i)
  t.match(text, /"requestId":"r-1"\}$/)
})

t.test('nothing is read for long of a body that is refused, and the sender has time to see why', async t => {
  let read = 0
  const port = await serve(t, res => {
    res.req.on('data', (chunk: Buffer) => {
      read += chunk.length
    })
    refused(res)
  })
  const client = await openRaw(t, port)
  client.write('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000\r\n\r\n')
  client.write(Buffer.alloc(10_000_000))
  await client.until(/"r-1"\}$/)
  t.equal(client.socket.destroyed, false)
  await client.closed()
  t.ok(read < 500_000, `${read} bytes were read`)
})

t.test('a chunked body that never ends does not hold the connection', async t => {
  const client = await openRaw(t, await serve(t, refused))
  client.write('POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n')
  t.match(await client.closed(), /Connection: close.*"r-1"\}$/is)
})

t.test('a body that was announced with Expect is not waited for', async t => {
  const client = await openRaw(t, await serve(t, refused))
  client.write('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n')
  const text = await client.closed()
  t.notMatch(text, /100 Continue/)
  t.match(text, /^HTTP\/1\.1 403 .*Connection: close/is)
})

t.test('a reply is not cached unless it says so', async t => {
  const port = await serve(t, res => sendReply(res, jsonReply(201, { a: 'ä' }, ['Location', '/x']), 'r-1'))
  const res = await fetch(`http://127.0.0.1:${port}/`)
  t.equal(res.status, 201)
  t.strictSame(await res.json(), { a: 'ä' })
  t.match(Object.fromEntries(res.headers), {
    'cache-control': 'no-store',
    'gateway-request-id': 'r-1',
    location: '/x',
    'content-length': '10',
  })
  const cached = await serve(t, res =>
    sendReply(res, { status: 200, headers: ['cache-control', 'public'], body: 'x' }, 'r-1'),
  )
  t.equal((await fetch(`http://127.0.0.1:${cached}/`)).headers.get('cache-control'), 'public')
})

t.test('a stream is passed on; HEAD gets the headers alone', async t => {
  const streams: Readable[] = []
  const port = await serve(t, res => {
    streams.push(Readable.from([Buffer.from('one'), Buffer.from('two')]))
    return sendReply(res, { status: 200, body: streams.at(-1)! }, 'r-1')
  })
  t.equal(await (await fetch(`http://127.0.0.1:${port}/`)).text(), 'onetwo')
  t.equal(await (await fetch(`http://127.0.0.1:${port}/`, { method: 'HEAD' })).text(), '')
  t.ok(streams.every(({ destroyed }) => destroyed))
})

t.test('a stream that fails, or that nobody reads any more, ends with its connection', async t => {
  const body = new PassThrough()
  const sent = Promise.withResolvers<void>()
  const port = await serve(t, async res => sent.resolve(await sendReply(res, { status: 200, body }, 'r-1')))
  const client = await openRaw(t, port)
  client.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
  body.write('begun')
  await client.until(/begun/)
  client.socket.destroy()
  await sent.promise
  t.ok(body.destroyed)
  const broken = await serve(t, res => sendReply(res, { status: 200, body: failing() }, 'r-1'))
  await t.rejects(fetch(`http://127.0.0.1:${broken}/`).then(res => res.text()))
})

t.test('headers that cannot be sent destroy the stream', async t => {
  const body = new PassThrough()
  const port = await serve(t, async res => {
    await t.rejects(sendReply(res, { status: 200, headers: ['X-Bad', 'a\nb'], body }, 'r-1'), TypeError)
    res.end()
  })
  await fetch(`http://127.0.0.1:${port}/`)
  t.ok(body.destroyed)
})

function failing(): Readable {
  return Readable.from(
    (async function* () {
      yield Buffer.from('begun')
      throw new TypeError('broke off')
    })(),
  )
}
