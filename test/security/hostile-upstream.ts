/** T21, T33, T46: random answers neither break the gateway nor leave anything behind. */
import fc from 'fast-check'
import t from 'tap'
import { fetchDocumented } from '../fixtures/documented.ts'
import { startGateway } from '../fixtures/gateway.ts'
import { startRawServer } from '../fixtures/raw.ts'
import { runs } from '../fixtures/runs.ts'

const gateway = await startGateway(t, {
  config: {
    System: { RateLimit: { RequestsPerMinute: 10_000_000, Burst: 1_000_000 }, CircuitBreaker: { Failures: 10_000 } },
    Proxy: { HeadersTimeoutSeconds: 1, IdleTimeoutSeconds: 1 },
  },
})
const { token } = await gateway.agent()

/** What the upstream says next, and how its connection ends. */
let next: readonly [pieces: readonly string[], end: 'end' | 'reset'] = [[], 'end']
let open = 0
const upstream = await startRawServer(t, socket => {
  open += 1
  socket.on('close', () => (open -= 1))
  socket.on('data', async () => {
    const [pieces, end] = next
    for (const piece of pieces) {
      socket.write(piece, 'latin1')
      await new Promise(setImmediate)
    }
    if (end === 'end') socket.end()
    else socket.resetAndDestroy()
  })
})

const pick = <T>(...values: readonly T[]) => fc.constantFrom(...values)
const status = pick(
  'HTTP/1.1 200 OK',
  'HTTP/1.1 204',
  'HTTP/1.1 304 x',
  'HTTP/1.0 200 \xe9',
  'HTTP/1.1 999 y',
  'HTTP/1.1 103 z',
)
const field = fc.oneof(
  pick('Content-Length: 3', 'Content-Length: 0', 'Transfer-Encoding: chunked', 'Connection: close, x', 'Trailer: X'),
  pick('Link: </a>; rel=preload, </b>', 'Link: nonsense', 'Set-Cookie: a=b', 'Content-Encoding: gzip', 'Upgrade: h2c'),
  pick(
    'Gateway-Error: x',
    '__proto__: x',
    'X: \xe9\xff',
    'Date: never',
    'Keep-Alive: timeout=0',
    'X : y',
    ' X: y',
    'X',
  ),
)
const body = pick('', 'abc', '3\r\nabc\r\n0\r\n\r\n', '3\r\nabc\r\n0\r\nX: y\r\nDate: z\r\n\r\n', '3\r\nab', '\0')
const head = fc
  .tuple(status, fc.array(field, { maxLength: 4 }))
  .map(([line, fields]) => `${[line, ...fields].join('\r\n')}\r\n\r\n`)
const ways = pick<'end' | 'reset'>('end', 'end', 'reset')

t.test('every request has an end, and the gateway is well', async t => {
  const answers: number[] = []
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.oneof(head, head, body), { minLength: 1, maxLength: 4 }),
      ways,
      pick('GET', 'HEAD', 'POST'),
      async (pieces, end, method) => {
        next = [pieces, end]
        const sent = method === 'POST' ? { method, body: 'x'.repeat(3_000) } : { method }
        const answer = await gateway.proxy(token, `${upstream.url}/`, sent).catch(() => undefined)
        answers.push(answer?.status ?? 0)
        await answer?.text().catch(() => {})
      },
    ),
    // Few draws may have none that is passed on, or none that is refused.
    {
      numRuns: runs(400),
      examples: [
        [['HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n', 'abc'], 'end', 'GET'],
        [['abc'], 'end', 'GET'],
      ],
    },
  )
  t.ok(answers.includes(200) && answers.includes(502), 'some were passed on, some refused')
  t.notOk(answers.includes(500))
  t.equal((await fetchDocumented(`${gateway.url}/health`)).status, 200)
  t.strictSame(
    gateway.log.filter(({ level }) => level === 'error'),
    [],
  )
  while (open > 0) await new Promise(setImmediate)
})
