/** Threat T29 of SECURITY.md. */
import t from 'tap'
import { createRateLimiter } from '../../src/limits/token-bucket.ts'

t.test('a burst passes at once, and exactly as many as it says', async t => {
  const limiter = createRateLimiter({ requestsPerMinute: 600, burst: 100 })
  const waits = Array.from({ length: 101 }, () => limiter.take('a', 1_000))
  t.ok(waits.slice(0, 100).every(wait => wait === 0))
  t.ok((waits[100] ?? 0) > 0 && (waits[100] ?? 0) <= 100, 'the next may pass after one interval')
})

t.test('after a burst one request passes per interval', async t => {
  const limiter = createRateLimiter({ requestsPerMinute: 60, burst: 2 })
  t.equal(limiter.take('a', 0), 0)
  t.equal(limiter.take('a', 0), 0)
  t.equal(limiter.take('a', 0), 1_000)
  t.equal(limiter.take('a', 999), 1)
  t.equal(limiter.take('a', 1_000), 0)
  t.equal(limiter.take('a', 1_000), 1_000)
})

t.test('a refused request takes nothing', async t => {
  const limiter = createRateLimiter({ requestsPerMinute: 60, burst: 1 })
  limiter.take('a', 0)
  for (let i = 0; i < 50; i++) t.equal(limiter.take('a', 0), 1_000)
})

t.test('agents do not share a bucket, and an idle one is forgotten', async t => {
  const limiter = createRateLimiter({ requestsPerMinute: 60, burst: 1 })
  t.equal(limiter.take('a', 0), 0)
  t.equal(limiter.take('b', 0), 0)
  limiter.sweep(500)
  t.equal(limiter.size, 2)
  limiter.sweep(1_000)
  t.equal(limiter.size, 0)
  t.equal(limiter.take('a', 1_000), 0)
})

t.test('over any minute no more pass than the burst and the pace allow', async t => {
  const limiter = createRateLimiter({ requestsPerMinute: 600, burst: 100 })
  let passed = 0
  for (let now = 0; now < 60_000; now += 7) if (limiter.take('a', now) === 0) passed += 1
  t.ok(passed <= 700, `${passed}`)
  t.ok(passed >= 699, `${passed}`)
})
