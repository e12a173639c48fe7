/** Threats T20, T22, T40, T41, T46 of SECURITY.md. */
import t, { type Test } from 'tap'
import { startGateway } from '../fixtures/gateway.ts'
import { type Seen, startOrigin } from '../fixtures/origin.ts'
import { openRaw } from '../fixtures/raw.ts'
import { answers, cases, type RawCase, staysOpen, stripped, targets } from '../fixtures/raw-http.ts'

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

function bytesOf(one: RawCase): Buffer {
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

function upstreamSaw(t: Test, one: RawCase, seen: readonly Seen[]): void {
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
