/** The requests of test/security/raw-http.ts, in tunnels that the gateway reads. Threats T20, T22, T40, T41, T46, T72. */
import t, { type Test } from 'tap'
import { openSecure, openTunnel, secureSetup, startForward } from '../fixtures/forward.ts'
import { merge } from '../fixtures/gateway.ts'
import { type Origin, type Seen, startOrigin, startSecureOrigin } from '../fixtures/origin.ts'
import { answers, cases, type RawCase, stripped, targets } from '../fixtures/raw-http.ts'

/** Cases about the path behind /proxy/, or the field that has the token there: they say nothing in a tunnel. */
const elsewhere = /^(?:R043|R046|R05[4-8]|R06[789]|R07[0-8]|H001|H004|H005|H01[0]|H02[2345]|H033)$/

/** Where a tunnel differs from /proxy/, by its token, its host or its target. */
const others: Readonly<Record<string, readonly number[]>> = {
  R045: [200, 200],
  R053: [400],
  H014: [200],
  H019: [421],
}

const answer = (_req: unknown, res: { end(text: string): unknown }) => void res.end('hello from upstream')
const secure = await startSecureOrigin(t, (req, res) => void req.resume().on('end', () => answer(req, res)))
const plain = await startOrigin(t, (req, res) => void req.resume().on('end', () => answer(req, res)))

const token = 'Gateway-Authorization: Bearer {{TOKEN}}'

/** The same request to the upstream itself. */
const bytesOf = ({ raw }: RawCase, authority: string): Buffer =>
  Buffer.from(
    raw
      .replaceAll('/proxy/{{UP}}', '')
      .replaceAll(`${token}\r\n`, '')
      .replaceAll(`${token}\n`, '')
      .replaceAll('{{GWHOST}}', authority),
    'latin1',
  )

const statuses = (text: string) =>
  [...text.matchAll(/HTTP\/1\.1 (\d{3}) (?!Connection established)/g)].map(match => Number(match[1]))

/** A gateway and the token of an agent. */
async function startThreads(threads: number) {
  const config = merge(secureSetup.config ?? {}, {
    System: { RateLimit: { Burst: 10_000 }, Server: { Threads: threads } },
  })
  const gateway = await startForward(t, { ...secureSetup, config })
  return { threads, gateway, authorization: `Bearer ${(await gateway.agent()).token}` }
}

for (const { threads, gateway, authorization } of [await startThreads(1), await startThreads(2)]) {
  const kinds = [
    ['in TLS', secure, `idp.test:${secure.port}`, openSecure],
    ['in the clear', plain, `127.0.0.1:${plain.port}`, openTunnel],
  ] as const

  for (const [kind, origin, to, open] of kinds) {
    for (const one of cases.filter(({ id }) => !elsewhere.test(id))) {
      t.test(`${one.id}, ${kind}, ${threads} thread(s): ${one.name}`, async t => {
        origin.seen.length = 0
        const expected = others[one.id] ?? answers[one.id] ?? [400]
        const client = await open(t, gateway, { to, authorization })
        client.write(bytesOf(one, to))
        // A second, sound request tells whether the connection is still in step; after a closed one it goes nowhere.
        client.write(`GET /last HTTP/1.1\r\nHost: ${to}\r\nConnection: close\r\n\r\n`)
        const text = await client.closed()
        t.strictSame(statuses(text).slice(0, expected.length), expected)
        upstreamSaw(t, one, origin)
      })
    }
  }
}

function upstreamSaw(t: Test, { id }: RawCase, { port, seen }: Origin): void {
  const own: readonly Seen[] = seen.filter(({ target }) => target !== '/last')
  const passed = (others[id] ?? answers[id] ?? [400]).filter(status => status === 200).length
  t.equal(own.filter(({ done }) => done).length, id === 'H014' ? 0 : passed, 'whole requests upstream')
  if (id !== 'R045') t.notOk(own.some(({ target }) => target.includes('SMUGGLED')))
  for (const request of own) {
    t.ok(request.headers.host?.endsWith(`:${port}`))
    t.equal(request.headers['x-inj'], undefined)
    for (const name of stripped[id] ?? []) t.equal(request.headers[name], undefined, name)
    if (targets[id] !== undefined) t.equal(request.target, targets[id])
  }
}
