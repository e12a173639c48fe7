/** Threat T29 of SECURITY.md. */

import t from 'tap'
import { createRateLimiter, type RateLimit, rateShape } from '../../src/limits/token-bucket.ts'
import { createTable } from '../fixtures/table.ts'

const create = (limit: RateLimit, slots = rateShape.slots) =>
  createRateLimiter(limit, createTable({ ...rateShape, slots }))

t.test('a burst passes at once, and exactly as many as it says', async t => {
  const limiter = create({ requestsPerMinute: 600, burst: 100 })
  const waits = Array.from({ length: 101 }, () => limiter.take('a', 1_000))
  t.ok(waits.slice(0, 100).every(wait => wait === 0))
  t.ok((waits[100] ?? 0) > 0 && (waits[100] ?? 0) <= 100, 'the next may pass after one interval')
})

t.test('after a burst one request passes per interval', async t => {
  const limiter = create({ requestsPerMinute: 60, burst: 2 })
  t.equal(limiter.take('a', 0), 0)
  t.equal(limiter.take('a', 0), 0)
  t.equal(limiter.take('a', 0), 1_000)
  t.equal(limiter.take('a', 999), 1)
  t.equal(limiter.take('a', 1_000), 0)
  t.equal(limiter.take('a', 1_000), 1_000)
})

t.test('what is left is what may follow at once', async t => {
  const limiter = create({ requestsPerMinute: 60, burst: 3 })
  const left = (now: number) => [limiter.take('a', now), limiter.left()]
  t.strictSame(
    [left(0), left(0), left(0), left(0)],
    [
      [0, 2],
      [0, 1],
      [0, 0],
      [1_000, 0],
    ],
  )
  t.strictSame(left(2_500), [0, 1])
  t.strictSame(left(60_000), [0, 2])
})

t.test('a refused request takes nothing', async t => {
  const limiter = create({ requestsPerMinute: 60, burst: 1 })
  limiter.take('a', 0)
  for (let i = 0; i < 50; i++) t.equal(limiter.take('a', 0), 1_000)
})

t.test('agents do not share a bucket', async t => {
  const limiter = create({ requestsPerMinute: 60, burst: 1 })
  for (let i = 0; i < 1_000; i++) t.equal(limiter.take(`agent-${i}`, 0), 0)
  for (let i = 0; i < 1_000; i++) t.equal(limiter.take(`agent-${i}`, 0), 1_000)
})

t.test('when there is no room, who is idle is forgotten, and nobody else', async t => {
  const limiter = create({ requestsPerMinute: 60, burst: 1 }, 2)
  t.equal(limiter.take('a', 0), 0)
  t.equal(limiter.take('b', 500), 0)
  t.equal(limiter.take('c', 999), 1_000, 'both are in use: the third must wait')
  t.equal(limiter.take('c', 1_000), 0, 'now it has the place of the first')
  t.equal(limiter.take('b', 1_000), 500)
})

t.test('over any minute no more pass than the burst and the pace allow', async t => {
  const limiter = create({ requestsPerMinute: 600, burst: 100 })
  let passed = 0
  for (let now = 0; now < 60_000; now += 7) if (limiter.take('a', now) === 0) passed += 1
  t.ok(passed <= 700, `${passed}`)
  t.ok(passed >= 699, `${passed}`)
})
