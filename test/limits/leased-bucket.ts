/** Threat T29 of SECURITY.md, over several gateways. */
import fc from 'fast-check'
import t from 'tap'
import { type LeaseAnswer, LeasedBuckets, leaseShape } from '../../src/limits/leased-bucket.ts'
import { type RateLimit, rateShape } from '../../src/limits/token-bucket.ts'
import { type Bucket, fullBucket, leaseFrom } from '../fixtures/fleet-bucket.ts'
import { createTable } from '../fixtures/table.ts'

interface Event {
  readonly at: number
  run(now: number): void
}

interface Plan {
  readonly limit: RateLimit
  readonly members: number
  /** One way to the database, milliseconds. */
  readonly delay: number
  /** Requests a millisecond that come to each gateway, by time. */
  readonly load: (member: number, now: number) => number
  /** Whether a gateway reaches the database. */
  readonly reaches?: (member: number, now: number) => boolean
  readonly ms: number
}

/** Runs gateways with a virtual clock; the times at which requests were admitted. */
function simulate({ limit, members, delay, load, reaches = () => true, ms }: Plan): readonly number[] {
  const bucket: Bucket = fullBucket(limit, 0)
  const admitted: number[] = []
  const events: Event[] = []
  const later = (at: number, run: (now: number) => void) => events.push({ at, run })
  const gateways = Array.from({ length: members }, (_, member) => {
    // Clocks differ: only the bucket's own counts there.
    const skew = member * 777
    const needed = new Set<string>()
    const buckets = new LeasedBuckets({
      limit,
      leases: createTable({ ...leaseShape, slots: 64 }),
      rates: createTable({ ...rateShape, slots: 64 }),
      onNeed: key => needed.add(key),
      members: () => members,
    })
    let isBusy = false
    let backlog = 0
    let waiting = 0
    return {
      tick(now: number): void {
        const own = now + skew
        if (needed.size > 0 && !isBusy) {
          const ask = [...needed].flatMap(key => buckets.ask(key, own) ?? [])[0]
          needed.clear()
          if (ask !== undefined) {
            isBusy = true
            const free = (pause: number) => later(now + pause, () => (isBusy = false))
            if (!reaches(member, now)) {
              later(now + 50, at => buckets.goAlone('a', at + skew))
              later(now + 1_000, at => {
                buckets.miss(ask, at + skew)
                free(1_000)
              })
            } else {
              later(now + delay, at => {
                const answer: LeaseAnswer = leaseFrom(bucket, ask, limit, at)
                later(at + delay, end => {
                  buckets.accept(ask, answer, { sent: own, now: end + skew })
                  isBusy = false
                })
              })
            }
          }
        }
        if (now % 250 === 0 && buckets.isIdle('a', own)) needed.add('a')
        backlog += load(member, now)
        let wanted = Math.floor(backlog) + waiting
        backlog -= Math.floor(backlog)
        waiting = 0
        for (; wanted > 0; wanted--) {
          const wait = buckets.take('a', own)
          if (wait === 0) admitted.push(now)
          else if (wait === undefined && waiting < 64) waiting += 1
        }
        if (waiting > 0) needed.add('a')
      },
    }
  })
  for (let now = 0; now < ms; now++) {
    for (const event of events.splice(0)) {
      if (event.at <= now) event.run(now)
      else events.push(event)
    }
    for (const gateway of gateways) gateway.tick(now)
  }
  return admitted
}

/** By how many requests the worst of all windows of time is above `burst + pace * window`. */
function excess(admitted: readonly number[], { burst, requestsPerMinute }: RateLimit): number {
  const pace = requestsPerMinute / 60_000
  let least = Infinity
  let worst = -Infinity
  admitted.forEach((at, index) => {
    least = Math.min(least, index - pace * at)
    worst = Math.max(worst, index + 1 - pace * at - least)
  })
  return worst - burst
}

const usual: RateLimit = { requestsPerMinute: 600, burst: 100 }

t.test('gateways together admit no more than the burst and the pace, and nearly all of it', async t => {
  for (const members of [1, 2, 3, 8]) {
    for (const perSecond of [20, 300]) {
      const ms = 30_000
      const admitted = simulate({ limit: usual, members, delay: 2, load: () => perSecond / members / 1_000, ms })
      const over = excess(admitted, usual)
      t.ok(over <= members + 0.01, `${members} gateways, ${perSecond} a second: ${over.toFixed(1)} over`)
      const owed = Math.min(perSecond * 30, usual.burst + 300)
      t.ok(admitted.length >= 0.9 * owed, `${members} gateways, ${perSecond} a second: ${admitted.length} of ${owed}`)
    }
  }
})

/** Loads a millisecond: steady, a burst every two seconds, in turn at one gateway, none for a while. */
const patterns: readonly ((pace: number) => Plan['load'])[] = [
  pace => () => pace,
  pace => (_, now) => (now % 2_000 < 20 ? pace * 100 : 0),
  pace => (member, now) => (Math.floor(now / 700) % 3 === member ? pace * 3 : 0),
  pace => (_, now) => (now % 9_000 < 5_000 ? 0 : pace * 2),
]

const plans = fc.record({
  limit: fc.record({
    requestsPerMinute: fc.integer({ min: 30, max: 60_000 }),
    burst: fc.integer({ min: 1, max: 500 }),
  }),
  members: fc.integer({ min: 1, max: 8 }),
  delay: fc.integer({ min: 0, max: 40 }),
  pattern: fc.integer({ min: 0, max: patterns.length - 1 }),
  /** Of all requests to those that the limit admits. */
  demand: fc.double({ min: 0.2, max: 5, noNaN: true }),
  /** The gateway that loses the database, and when, for how long. */
  cut: fc.record({ from: fc.integer({ min: 0, max: 15_000 }), ms: fc.integer({ min: 0, max: 4_000 }) }),
})

t.test('the bound holds for any load, any delay, and a gateway that dies', async t => {
  fc.assert(
    fc.property(plans, ({ limit, members, delay, pattern, demand, cut }) => {
      const pace = (limit.requestsPerMinute / 60_000 / members) * demand
      const load = patterns[pattern]!(pace)
      const dies = (member: number, now: number) => member === 0 && now >= cut.from && cut.ms > 2_000
      const admitted = simulate({
        ...{ limit, members, delay, ms: 20_000 },
        load: (member, now) => (dies(member, now) ? 0 : load(member, now)),
      })
      const debt = Math.max(1, Math.floor(limit.burst / 100))
      return excess(admitted, limit) <= members * debt + 0.01
    }),
    { numRuns: 60 },
  )
  t.pass('60 random plans')
})

t.test('a gateway without the database adds no more than its share', async t => {
  fc.assert(
    fc.property(plans, ({ limit, members, delay, pattern, demand, cut }) => {
      const pace = limit.requestsPerMinute / 60_000
      const admitted = simulate({
        ...{ limit, members, delay, ms: 20_000 },
        load: patterns[pattern]!((pace / members) * demand),
        reaches: (member, now) => member > 0 || now < cut.from || now > cut.from + cut.ms,
      })
      const debt = Math.max(1, Math.floor(limit.burst / 100))
      const alone = Math.max(1, limit.burst / members) + ((cut.ms + 2_000) * pace) / members
      return excess(admitted, limit) <= members * debt + alone + 1
    }),
    { numRuns: 60 },
  )
  t.pass('60 random plans')
})

t.test('leased tokens can be used for a second, and not after that', async t => {
  const needed: string[] = []
  const buckets = new LeasedBuckets({
    limit: usual,
    leases: createTable(leaseShape),
    rates: createTable(rateShape),
    onNeed: key => needed.push(key),
    members: () => 3,
  })
  t.equal(buckets.take('a', 0), 0, 'the first passes while the bucket is asked')
  t.strictSame(needed, ['a'])
  t.equal(buckets.take('a', 0), undefined, 'the second waits for the answer')
  const ask = buckets.ask('a', 0)
  if (ask === undefined) throw new Error('nothing is asked')
  t.match(ask, { debt: 1, used: 0 })
  buckets.accept(ask, { key: 'a', granted: 4, wait: 0, at: 1e12 }, { sent: 0, now: 5 })
  for (const now of [6, 500, 999]) t.equal(buckets.take('a', now), 0)
  t.equal(buckets.take('a', 1_000), 0, 'without a token, while the bucket is asked again')
  t.equal(buckets.take('a', 1_000), undefined)
  t.match(buckets.ask('a', 1_000), { used: 3, debt: 1, leasedAt: 1e12 })
})

t.test('an answer that took longer than a second is not used', async t => {
  const buckets = new LeasedBuckets({
    limit: usual,
    leases: createTable(leaseShape),
    rates: createTable(rateShape),
    onNeed: () => {},
    members: () => 3,
  })
  buckets.take('a', 0)
  const ask = buckets.ask('a', 0)
  if (ask === undefined) throw new Error('nothing is asked')
  buckets.accept(ask, { key: 'a', granted: 4, wait: 0, at: 1e12 }, { sent: 0, now: 1_001 })
  t.equal(buckets.take('a', 1_002), 0, 'without a token')
  t.equal(buckets.take('a', 1_002), undefined)
})
