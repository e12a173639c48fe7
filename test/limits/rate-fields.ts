import t from 'tap'
import { refusalKinds } from '../../src/base/refusal-kinds.ts'
import { refuse } from '../../src/base/refusals.ts'
import { rateFields, secondsUntilFull } from '../../src/limits/rate-fields.ts'

t.test('each refusal with 429 or 503 says when to come again, and no other does', async t => {
  for (const [code, { status }] of Object.entries(refusalKinds)) {
    const { headers = [] } = refuse(code as keyof typeof refusalKinds)
    t.equal(headers.includes('Retry-After'), status === 429 || status === 503, code)
  }
})

t.test('a Retry-After of its own replaces the usual one', async t => {
  t.strictSame(refuse('busy', undefined, { headers: ['Retry-After', '9', 'A', 'b'] }).headers, [
    'Retry-After',
    '9',
    'A',
    'b',
  ])
  t.strictSame(refuse('busy', undefined, { headers: ['A', 'b'] }).headers, ['Retry-After', '1', 'A', 'b'])
})

t.test('the fields name limit, burst, what is left, and when the bucket is full', async t => {
  const limit = { requestsPerMinute: 600, burst: 100 }
  t.strictSame(rateFields(limit, 9, secondsUntilFull(limit, 9)), [
    'RateLimit-Policy',
    '"agent-gateway";q=600;w=60;agw-burst=100',
    'RateLimit',
    '"agent-gateway";r=9;t=10',
  ])
})

t.test('the text is kept while every figure stays, and no longer', async t => {
  const limit = { requestsPerMinute: 600, burst: 100 }
  const first = rateFields(limit, 9, 10)
  t.equal(rateFields({ ...limit }, 9, 10), first)
  const others = [
    () => rateFields(limit, 8, 10),
    () => rateFields(limit, 9, 11),
    () => rateFields({ ...limit, burst: 99 }, 9, 10),
    () => rateFields({ ...limit, requestsPerMinute: 599 }, 9, 10),
  ]
  for (const other of others) {
    rateFields(limit, 9, 10)
    t.not(other(), first)
  }
})
