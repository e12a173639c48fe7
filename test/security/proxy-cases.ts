/** Threats T29, T31 of SECURITY.md; the cases of the corpus that are about /proxy. */
import { readFileSync } from 'node:fs'
import t, { type Test } from 'tap'
import { apiCases } from '../fixtures/api-cases.ts'
import { startGateway } from '../fixtures/gateway.ts'
import { startOrigin } from '../fixtures/origin.ts'
import { openRaw, startRawServer } from '../fixtures/raw.ts'

/** Cases that other tests hold: file, and what the title there says. */
const elsewhere: Readonly<Record<string, readonly [string, string]>> = {
  A050: ['test/security/tokens-on-the-wire.ts', 'two tokens, no token and what only looks like one'],
  A051: ['test/security/tokens-on-the-wire.ts', 'revocation, quarantine and removal bite'],
  A052: ['test/proxy/outcomes.ts', 'what the policy denies is 403'],
  A053: ['test/proxy/outcomes.ts', 'an agent without a policy, or with one that is gone'],
  A054: ['test/proxy/outcomes.ts', 'what the policy denies is 403'],
  A055: ['test/security/ssrf.ts', 'T02 the gateway is not reached over its loopback names'],
  A056: ['test/security/ssrf.ts', 'T02 T03 no spelling of a forbidden host gets a socket'],
  A057: ['test/security/ssrf.ts', 'T04 a name whose answers alternate'],
  A058: ['test/proxy/upstream-fails.ts', 'nothing was retried and redirects were not followed'],
  A059: ['test/proxy/upstream-fails.ts', 'an upstream that refuses the connection is 502'],
  A060: ['test/proxy/upstream-fails.ts', 'an upstream that never answers is 504'],
  // Bodies stream in constant memory; there is a limit where one is held.
  A061: ['test/proxy/hitl-lives.ts', 'a body longer than may be held is 413'],
  A062: ['test/proxy/hitl-lives.ts', 'a body longer than may be held is 413'],
  A063: ['test/proxy/head-decisions.ts', ' does not blind the rule: it applies'],
  A064: ['test/proxy/streams.ts', 'an announced length stays announced, and every byte value arrives'],
  A065: ['test/proxy/fields.ts', 'HEAD gets the head alone, and the connection stays in step'],
  A066: ['test/proxy/fields.ts', ' has no body, also when the upstream sends one'],
  A067: ['test/proxy/upstream-fails.ts', 'sends two different lengths'],
  A069: ['test/proxy/fields.ts', 'early hints reach the client before the answer'],
  A072: ['test/proxy/fields.ts', 'what the upstream names in Connection does not reach the client'],
  A074: ['test/proxy/upstream-fails.ts', ' that breaks off midway breaks off visibly'],
  A075: ['test/proxy/client-aborts.ts', 'a client that leaves in the middle of a download cancels it'],
  A077: ['test/proxy/circuit.ts', 'five failures open the circuit of that origin alone'],
  A079: ['test/security/raw-http.ts', 'for (const one of cases) {'],
  A080: ['test/proxy/fields.ts', 'the fallback to Authorization takes the token'],
  A081: ['test/config/formats.ts', ' takes what is right and says what is wrong'],
}

const cases = apiCases(group => group === 'proxy')

const burst = 20
const gateway = await startGateway(t, {
  config: { System: { RateLimit: { RequestsPerMinute: 1, Burst: burst } }, Trust: { QuarantineDenials: 0 } },
  lookup: async () => ['127.0.0.1'],
})

/** What a client gets, byte for byte, for a GET that the upstream answers with `bytes`. */
async function answerTo(t: Test, bytes: string): Promise<string> {
  const { token } = await gateway.agent()
  const server = await startRawServer(t, socket => {
    socket.once('data', () => socket.end(Buffer.from(bytes, 'latin1')))
  })
  const raw = await openRaw(t, gateway.port)
  raw.write(
    `GET /proxy/${server.url}/ HTTP/1.1\r\nHost: g\r\nConnection: close\r\nGateway-Authorization: Bearer ${token}\r\n\r\n`,
  )
  return raw.closed()
}

const tests: Readonly<Record<string, (t: Test) => Promise<void>>> = {
  async A068(t) {
    const answer = await answerTo(t, 'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')
    t.match(answer, /^HTTP\/1\.1 (?:200 OK\r\n[\s\S]*\r\n\r\nok|502 )/)
  },
  async A070(t) {
    for (const status of ['600', '999', '099', '1000', '20', '2xx', '-200', '000']) {
      const answer = await answerTo(t, `HTTP/1.1 ${status} Odd\r\nContent-Length: 2\r\n\r\nok`)
      t.match(answer, new RegExp(`^HTTP/1\\.1 (?:${status}|502) `), status)
    }
  },
  async A071(t) {
    const latin = await answerTo(t, 'HTTP/1.1 200 OK\r\nX-Name: caf\u00e9\r\nContent-Length: 2\r\n\r\nok')
    t.match(latin, /^HTTP\/1\.1 200 OK\r\n[\s\S]*X-Name: caf\u00e9\r\n/)
    for (const fields of ['X: y\r\n'.repeat(3_000), `X: ${'y'.repeat(70_000)}\r\n`]) {
      t.match(await answerTo(t, `HTTP/1.1 200 OK\r\n${fields}Content-Length: 0\r\n\r\n`), /^HTTP\/1\.1 (?:200|502) /)
    }
  },
  async A073(t) {
    const cookies = 'Set-Cookie: a=1\r\nX: 1\r\nset-cookie: b=2\r\nX: 2\r\nSet-Cookie: a=3\r\n'
    const answer = await answerTo(t, `HTTP/1.1 200 OK\r\n${cookies}Content-Length: 0\r\n\r\n`)
    t.match(answer.replace(/; Path=\S+/g, ''), cookies)
  },
  async A076(t) {
    const origin = await startOrigin(t)
    const { token } = await gateway.agent()
    const raw = await openRaw(t, gateway.port)
    const one = (last: boolean) =>
      `GET /proxy/${origin.url}/ HTTP/1.1\r\nHost: g\r\nGateway-Authorization: Bearer ${token}\r\n${last ? 'Connection: close\r\n' : ''}\r\n`
    raw.write(one(false).repeat(burst) + one(true))
    const text = await raw.closed()
    const statuses = [...text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status))
    // Those that came before their token was verified wait for that side by side.
    t.strictSame(statuses.toSorted(), [...Array(burst).fill(200), 429])
    t.match(text, /retry-after: \d+\r\n/i)
    t.equal(origin.seen.length, burst)
  },
  async A078(t) {
    const own = await startGateway(t, {
      config: { System: { RateLimit: { RequestsPerMinute: 1_000_000, Burst: 10_000, MaxInFlight: 100 } } },
      lookup: async () => ['127.0.0.1'],
    })
    const origin = await startOrigin(t)
    const { token } = await own.agent()
    const statuses = new Set<number>()
    const ask = async (index: number) => {
      // Port 1 is closed.
      const answer = await own.proxy(token, `http://host-${index}.example:1/`)
      await answer.body?.cancel()
      statuses.add(answer.status)
    }
    for (let index = 0; index < 1_000; index += 100) {
      await Promise.all(Array.from({ length: 100 }, (_, offset) => ask(index + offset)))
    }
    t.strictSame([...statuses], [502])
    t.equal((await own.proxy(token, `${origin.url}/`)).status, 200, 'the next one is served')
  },
}

for (const { id, request, expect } of cases)
  if (tests[id] !== undefined) t.test(`${id}: ${request} -> ${expect}`, tests[id])

t.test('every case of the data plane has its test', async t => {
  const known = [...Object.keys(tests), ...Object.keys(elsewhere)].sort()
  t.strictSame(known, cases.map(({ id }) => id).sort())
  for (const [id, [file, title]] of Object.entries(elsewhere)) {
    t.ok(readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8').includes(title), `${id}: ${title}`)
  }
})
