/** Threats T20, T22, T40, T41, T46 of SECURITY.md. */
import { readFileSync } from 'node:fs'
import t, { type Test } from 'tap'
import { startGateway } from '../fixtures/gateway.ts'
import { type Seen, startOrigin } from '../fixtures/origin.ts'
import { openRaw } from '../fixtures/raw.ts'

/** One hostile or odd request as bytes, and what must come of it. */
interface Case {
  readonly id: string
  readonly name: string
  /** `{{UP}}` base URL of the upstream, `{{GWHOST}}` authority of the gateway, `{{TOKEN}}`, `{{S}}` and its length. */
  readonly raw: string
  readonly S?: string
}

const { cases } = JSON.parse(readFileSync(new URL('../cases/raw_http_cases.json', import.meta.url), 'utf8')) as {
  cases: readonly Case[]
}

/** Statuses of the answers, in order. A case that is not here is 400, and the connection is closed. */
const answers: Readonly<Record<string, readonly number[]>> = {
  R028: [200],
  R041: [413],
  R043: [401],
  R044: [200],
  R045: [200, 401],
  R046: [401],
  R054: [200],
  R056: [405],
  R063: [200],
  R070: [200],
  R077: [404],
  R079: [200],
  R080: [200],
  H001: [200],
  H002: [200],
  H005: [401],
  H006: [200],
  H007: [426],
  H008: [200],
  H009: [100, 200],
  H010: [401],
  H011: [417],
  H012: [200],
  H013: [200],
  H014: [200],
  H015: [405],
  H016: [405],
  H017: [431],
  H018: [431],
  H019: [200],
  H020: [200],
  H021: [200],
  H022: [401],
  H023: [401],
  H024: [200],
  H025: [200],
  H026: [200],
  H027: [200],
  H030: [200],
  // Answered in HTTP/2: test/proxy/http2-client.ts.
  H031: [],
  H034: [200],
  H035: [200],
}

/** The framing is sound, so that the next request on the connection is answered. */
const staysOpen = /^(?:R04[4-6]|R05[45789]|R063|R06[4-9]|R07\d|R080|H00[2569]|H01[1-69]|H02[0-7]|H03[45])$/

/** The request target that the upstream must see: byte for byte what was sent. */
const targets: Readonly<Record<string, string>> = {
  R063: '/a%0d%0aX-Inj:%201',
  R079: '/a?x=1&x=2&x=%26&y=+%20',
  R080: '/a?',
}

/** Fields that must not reach the upstream. */
const stripped: Readonly<Record<string, readonly string[]>> = {
  H001: ['gateway-authorization'],
  H002: ['x-secret'],
  H008: ['upgrade', 'http2-settings'],
  H009: ['expect'],
  H012: ['te'],
}

const origin = await startOrigin(t, (req, res) => {
  req.resume().on('end', () => res.end('hello from upstream'))
})
const gateway = await startGateway(t, { config: { System: { RateLimit: { Burst: 10_000 } } } })
const { token } = await gateway.agent()
const authority = `127.0.0.1:${gateway.port}`

function fill(text: string): string {
  return text
    .replaceAll('{{UP}}', origin.url)
    .replaceAll('{{GWHOST}}', authority)
    .replaceAll('{{TOKEN}}', token)
    .replaceAll('127.0.0.1:9101', `127.0.0.1:${origin.port}`)
}

function bytesOf(one: Case): Buffer {
  const inner = fill(one.S ?? '')
  return Buffer.from(fill(one.raw).replaceAll('{{LEN:S}}', String(inner.length)).replaceAll('{{S}}', inner), 'latin1')
}

const statuses = (text: string) => [...text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(match => Number(match[1]))

for (const one of cases) {
  t.test(`${one.id}: ${one.name}`, async t => {
    origin.seen.length = 0
    const expected = answers[one.id] ?? [400]
    const client = await openRaw(t, gateway.port)
    client.write(bytesOf(one))
    // A second, sound request tells whether the connection is still in step; after a closed one it goes nowhere.
    client.write(`GET /health HTTP/1.1\r\nHost: ${authority}\r\nX-Last: yes\r\nConnection: close\r\n\r\n`)
    const text = await client.closed()
    t.strictSame(statuses(text).slice(0, expected.length), expected)
    t.notMatch(text, new RegExp(token.slice(-20)), 'the token is not echoed')
    upstreamSaw(t, one, origin.seen)
    t.equal(text.includes('healthCheckDuration'), staysOpen.test(one.id), 'whether the next request was answered')
  })
}

function upstreamSaw(t: Test, one: Case, seen: readonly Seen[]): void {
  const forwarded = (answers[one.id] ?? [400]).includes(200) && !['R054', 'H014'].includes(one.id)
  t.equal(seen.filter(request => request.done).length, forwarded ? 1 : 0, 'whole requests upstream')
  t.notOk(seen.some(request => request.target.includes('SMUGGLED')))
  for (const request of seen) {
    t.equal(request.headers.host, `127.0.0.1:${origin.port}`)
    t.equal(request.headers['gateway-authorization'], undefined)
    t.equal(request.headers['x-inj'], undefined)
    for (const name of stripped[one.id] ?? []) t.equal(request.headers[name], undefined, name)
    if (targets[one.id] !== undefined) t.equal(request.target, targets[one.id])
  }
}

t.test('the process that met all of this still answers', async t => {
  t.equal((await gateway.proxy(token, `${origin.url}/`)).status, 200)
})
