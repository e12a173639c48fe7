/** Floods of HTTP/2 in a tunnel end the connection, and do not reach the upstream without bound. Threats T32, T76. */
import { once } from 'node:events'
import { constants } from 'node:http2'
import t, { type Test } from 'tap'
import { openSecure, startForward } from '../fixtures/forward.ts'
import { answerOf, http2Setup, openHttp2 } from '../fixtures/forward-http2.ts'
import { frameBytes, frames } from '../fixtures/frames-http2.ts'
import { eventually } from '../fixtures/gateway.ts'
import { startSecureOrigin } from '../fixtures/origin.ts'
import { startHttp2 } from '../fixtures/origin-http2.ts'
import { within } from '../fixtures/within.ts'

const origin = await startHttp2(t, (stream, _seen, { ':path': path = '' }) => {
  stream.respond({ ':status': 200 })
  stream.end('hello'.repeat(Number(path.slice(1)) || 1))
})
const to = origin.url.slice('https://'.length)
const config = {
  ForwardProxy: { KeepAliveSeconds: 1 },
  System: {
    Server: { HeadersTimeoutSeconds: 2, IdleTimeoutSeconds: 1 },
    RateLimit: { RequestsPerMinute: 100_000, Burst: 100_000, MaxInFlight: 4 },
  },
}
const gateway = await startForward(t, http2Setup(config))
const { token, id } = await gateway.agent()
const authorization = `Bearer ${token}`

const logged = (text: string, limit?: string) =>
  eventually(
    () => gateway.log.find(line => line.message === text && line.limit === limit),
    line => line !== undefined,
  )

const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')
const acknowledged = 1
const endHeaders = 4
const endStream = 1

/** A connection on which a test writes frames itself. */
async function openFrames(t: Test, place = to) {
  const client = await openSecure(t, gateway, { to: place, authorization, tls: { ALPNProtocols: ['h2'] } })
  const send = (type: number, flags: number, stream: number, payload: Uint8Array = Buffer.alloc(0)): void =>
    client.write(frameBytes(type, flags, stream, payload))
  client.write(preface)
  send(frames.settings, 0, 0)
  return { ...client, send }
}

/** The codes of GOAWAY, or of RST_STREAM, among the frames that a client has received. */
function codesIn(received: string, wanted: typeof frames.goaway | typeof frames.reset): number[] {
  const codes: number[] = []
  const bytes = Buffer.from(received, 'latin1')
  const before = wanted === frames.goaway ? 13 : 9
  for (let at = 0; at + 9 <= bytes.length; at += 9 + bytes.readUIntBE(at, 3)) {
    const isWhole = at + before + 4 <= bytes.length
    if (bytes.readUInt8(at + 3) === wanted && isWhole) codes.push(bytes.readUInt32BE(at + before))
  }
  return codes
}

/** A header section, each field as a literal without index (RFC 7541 section 6.2.2). */
const section = (fields: readonly (readonly [string, string])[]): Buffer =>
  Buffer.concat(
    fields.flatMap(([name, value]) => [
      Buffer.of(0),
      ...[name, value].flatMap(text => [Buffer.of(text.length), Buffer.from(text)]),
    ]),
  )
const headOf = (authority: string, method: string): Buffer =>
  section([
    [':method', method],
    [':scheme', 'https'],
    [':authority', authority],
    [':path', '/'],
  ])
const head = headOf(to, 'GET')
const alone = Buffer.of(0, 0, 0, 8)

t.test('T20 a request that is reset, with any code, does not look whole to the upstream', async t => {
  const http1 = await startSecureOrigin(t, () => {})
  const head = headOf(`idp.test:${http1.port}`, 'POST')
  const client = await openFrames(t, `idp.test:${http1.port}`)
  for (const [at, code] of [0, 2, 8].entries()) {
    const stream = 2 * at + 1
    client.send(frames.headers, endHeaders, stream, head)
    client.send(frames.data, 0, stream, Buffer.from('part'))
    const seen = await eventually(
      () => http1.seen[at],
      one => one?.bodyBytes === 4,
    )
    client.send(frames.reset, 0, stream, Buffer.of(0, 0, 0, code))
    await eventually(
      () => http1.sockets.size,
      size => size === 0,
    )
    t.match(seen, { done: false, aborted: true }, `code ${code}`)
  }
})

t.test('T76 a client that cancels every request at once is disconnected, and the limit is logged', async t => {
  const client = await openFrames(t)
  const before = origin.seen.length
  for (let stream = 1; stream < 2 * 400; stream += 2) {
    client.send(frames.headers, endHeaders | endStream, stream, head)
    client.send(frames.reset, 0, stream, alone)
  }
  const received = await client.closed()
  t.notMatch(received, /hello/)
  t.equal(codesIn(received, frames.goaway)[0], constants.NGHTTP2_ENHANCE_YOUR_CALM, 'it is told why')
  t.ok(origin.seen.length - before <= 210, `${origin.seen.length - before} requests upstream`)
  const line = await logged('a limit was reached', 'stream_resets')
  t.match(line, { limit: 'stream_resets', agentId: id })
})

t.test('a client that lets its requests end may cancel as many', async t => {
  const client = await openHttp2(t, gateway, { to, authorization })
  for (let round = 0; round < 210; round++) {
    await client.send()
    client
      .begin()
      .on('error', () => {})
      .close(8)
  }
  t.equal((await client.send()).status, 200)
})

t.test('T76 a header section in frames without end is broken off', async t => {
  const client = await openFrames(t)
  client.send(frames.headers, endStream, 1, head)
  for (let count = 0; count < 20; count++) client.send(frames.continuation, 0, 1, section([[`x-${count}`, 'y']]))
  t.notMatch(await client.closed(), /hello/)
  t.match(await logged('interception failed'), { reason: /CONTINUATION/ })
})

t.test('T76 too many fields, or too long ones, are refused and not sent on', async t => {
  const before = origin.seen.length
  const client = await openHttp2(t, gateway, { to, authorization })
  const many = await client.send(Object.fromEntries(Array.from({ length: 200 }, (_, i) => [`x-${i}`, 'y'])))
  t.strictSame([many.status, many.reset], [undefined, 11])
  const long = await client.send({ 'x-long': 'y'.repeat(20_000) }).catch(() => undefined)
  t.not(long?.status, 200)
  t.equal(origin.seen.length, before)
})

t.test(
  'T76 a header section that is longer than the gateway has said resets its stream, and no request begins',
  async t => {
    const client = await openFrames(t)
    // The limit holds once the client has acknowledged it (RFC 9113 section 6.5.3).
    client.send(frames.settings, acknowledged, 0)
    const field = Buffer.concat([
      Buffer.of(0, 1),
      Buffer.from('x'),
      Buffer.of(0x7f, 0xa1, 0x1e),
      Buffer.alloc(4_000, 'y'),
    ])
    client.send(frames.headers, endStream, 1, Buffer.concat([head, field, field]))
    client.send(frames.continuation, endHeaders, 1, Buffer.concat([field, field, field]))
    const [code] = await eventually(
      () => codesIn(client.text(), frames.reset),
      codes => codes.length > 0,
    )
    t.equal(code, constants.NGHTTP2_ENHANCE_YOUR_CALM)
  },
)

t.test('T76 a small field that the header table repeats many times is refused', async t => {
  const client = await openFrames(t)
  // A field of 4,000 bytes goes into the dynamic table, and one byte repeats it (RFC 7541 section 6.1).
  const long = Buffer.concat([
    Buffer.of(0x40, 1),
    Buffer.from('x'),
    Buffer.of(0x7f, 0xa1, 0x1e),
    Buffer.alloc(4_000, 'y'),
  ])
  client.send(frames.headers, endHeaders | endStream, 1, Buffer.concat([head, long, Buffer.alloc(100, 0xbe)]))
  t.match(await client.until(/"code":"\w+"/), /"code":"headers_too_large"/)
})

t.test('streams beyond the limit are refused, and a client that goes on opening them is disconnected', async t => {
  const client = await openFrames(t)
  const before = origin.seen.length
  for (let stream = 1; stream < 1_000; stream += 2) client.send(frames.headers, endHeaders, stream, head)
  await client.closed()
  t.ok(origin.seen.length - before <= 4)
})

t.test('T32 a connection without a request is closed after the time limits', async t => {
  const unused = await openFrames(t)
  t.strictSame(codesIn(await unused.closed(), frames.goaway), [constants.NGHTTP2_NO_ERROR])
  const client = await openHttp2(t, gateway, { to, authorization })
  t.equal((await client.send()).status, 200)
  await within(once(client.session, 'close'), () => 'the connection is open')
})

t.test('T76 the rest of an answer that the client does not take is cancelled, and the connection ends', async t => {
  const client = await openHttp2(t, gateway, { to, authorization }, { initialWindowSize: 0 })
  const closed = within(once(client.session, 'close'), () => 'the connection is open')
  const answers = await Promise.all([
    client.send(),
    client.send({ ':path': '/20000' }),
    client.send({ ':method': 'POST' }, 'body'),
  ])
  t.match(answers, Array(3).fill({ status: 200, body: '' }))
  t.strictSame([answers[0]?.reset, answers[2]?.reset], [8, 8])
  t.not(answers[1]?.reset, 0)
  await closed
})

t.test('a client that takes its answer late, but within the time limit, gets all of it', async t => {
  const client = await openHttp2(t, gateway, { to, authorization }, { initialWindowSize: 0 })
  const stream = client.begin()
  stream.end()
  const answer = answerOf(stream)
  await within(once(stream, 'response'), () => 'no answer has begun')
  client.session.settings({ initialWindowSize: 65_535 })
  t.match(await answer, { status: 200, body: 'hello', reset: 0 })
})
