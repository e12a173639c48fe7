/** Threat T12 of SECURITY.md, over several gateways. */
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { FleetAttempts } from '../../src/fleet/attempts.ts'
import type { LeaseAsk } from '../../src/limits/lease.ts'
import { type Bucket, fullBucket, leaseFrom } from '../fixtures/fleet-bucket.ts'

const limit = { requestsPerMinute: 6, burst: 6 }

/** A database; how many calls it had, and of how many keys. */
function openBuckets() {
  const buckets = new Map<string, Bucket>()
  const calls: number[] = []
  const lease = async (asks: readonly LeaseAsk[]) => {
    calls.push(asks.length)
    await sleep(2)
    return asks.map(ask => {
      const bucket = buckets.get(ask.key) ?? fullBucket(limit, 0)
      buckets.set(ask.key, bucket)
      return leaseFrom(bucket, ask, limit, 0)
    })
  }
  return { buckets, calls, lease, gateway: () => new FleetAttempts({ lease, prefix: 'login ' }) }
}

t.test('gateways together let as many attempts pass as there are tokens, in few calls', async t => {
  const { calls, gateway } = openBuckets()
  const fleet = [gateway(), gateway()]
  const waits = await Promise.all(Array.from({ length: 200 }, (_, n) => fleet[n % 2]!.take('a')))
  t.equal(waits.filter(wait => wait === 0).length, limit.burst)
  t.ok(waits.every(wait => wait === 0 || Number(wait) >= 10_000))
  t.equal(calls.length, 2)
})

t.test('attempts that did not fail leave the bucket as it was', async t => {
  const { buckets, gateway } = openBuckets()
  const attempts = gateway()
  for (let n = 0; n < 3 * limit.burst; n++) {
    t.equal(await attempts.take('a'), 0)
    attempts.giveBack('a')
  }
  await attempts.take('b')
  await attempts.take('b')
  t.match(buckets.get('login a'), { tokens: limit.burst, held: 0 })
})

t.test('many keys go with few calls, one call at a time', async t => {
  const { calls, gateway } = openBuckets()
  const attempts = gateway()
  const waits = await Promise.all(Array.from({ length: 1_200 }, (_, n) => attempts.take(`key ${n}`)))
  t.strictSame(new Set(waits), new Set([0]))
  t.strictSame(calls, [500, 500, 200])
})

t.test('of many keys 10,000 wait for a database that does not answer; others are not asked for', async t => {
  let asked = 0
  const silent = new FleetAttempts({
    prefix: '',
    lease(asks) {
      asked += asks.length
      return new Promise(() => {})
    },
  })
  void silent.take('first')
  await Promise.resolve()
  t.equal(asked, 1)
  const waiting = Array.from({ length: 10_000 }, (_, n) => silent.take(`key ${n}`))
  const order: string[] = []
  const all = Promise.all(waiting).then(attempts => {
    order.push('those that wait')
    return attempts
  })
  t.equal(await silent.take('another'), undefined)
  order.push('one more')
  t.strictSame(new Set(await all), new Set([undefined]))
  t.strictSame(order, ['one more', 'those that wait'])
})

t.test('an attempt waits 1 s for a database that does not answer, and not at all for one that fails', async t => {
  const failing = new FleetAttempts({ prefix: '', lease: () => Promise.reject(new Error('gone')) })
  t.equal(await failing.take('a'), undefined)
  const silent = new FleetAttempts({ prefix: '', lease: () => new Promise(() => {}) })
  const start = performance.now()
  t.equal(await silent.take('a'), undefined)
  t.ok(performance.now() - start > 990)
})
