/** Threat T29 of SECURITY.md, over several gateways. */
import fc from 'fast-check'
import t from 'tap'
import { usableMs } from '../../src/limits/lease.ts'
import { LeasedBuckets, leaseShape } from '../../src/limits/leased-bucket.ts'
import { type RateLimit, rateShape } from '../../src/limits/token-bucket.ts'
import { callMs, excess, failedMs, type Plan, simulate } from '../fixtures/lease-simulation.ts'
import { runs } from '../fixtures/runs.ts'
import { createTable } from '../fixtures/table.ts'

const usual: RateLimit = { requestsPerMinute: 600, burst: 100 }

t.test('gateways together admit no more than the burst and the pace, and nearly all of it', async t => {
  for (const members of [1, 2, 3, 8]) {
    for (const perSecond of [20, 300]) {
      const ms = 30_000
      const admitted = simulate({ limit: usual, members, delay: () => 2, load: () => perSecond / members / 1_000, ms })
      const over = excess(admitted, usual)
      t.ok(over <= members + 0.01, `${members} gateways, ${perSecond} a second: ${over.toFixed(1)} over`)
      const owed = Math.min(perSecond * 30, usual.burst + 300)
      t.ok(admitted.length >= 0.9 * owed, `${members} gateways, ${perSecond} a second: ${admitted.length} of ${owed}`)
    }
  }
})

t.test('so they do with a database of any speed', async t => {
  for (const roundTrip of [100, 240, 500, 900, 1_200, 4_000]) {
    const [members, ms] = [3, 40_000]
    const admitted = simulate({ limit: usual, members, delay: () => roundTrip / 2, load: () => 0.01, ms })
    t.ok(excess(admitted, usual) <= members + 0.01, `round trips of ${roundTrip} ms: ${excess(admitted, usual)} over`)
    t.ok(admitted.length >= 0.9 * (usual.burst + 400), `round trips of ${roundTrip} ms: ${admitted.length} of 500`)
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
  /** The shortest one way of a call, and how much longer the longest is. */
  delays: fc.record({ least: fc.integer({ min: 0, max: 200 }), spread: fc.integer({ min: 0, max: 290 }) }),
  seed: fc.integer({ min: 1, max: 1_000_000 }),
  pattern: fc.integer({ min: 0, max: patterns.length - 1 }),
  /** Of all requests to those that the limit admits. */
  demand: fc.double({ min: 0.2, max: 5, noNaN: true }),
  cut: fc.record({
    from: fc.integer({ min: 0, max: 15_000 }),
    ms: fc.integer({ min: 0, max: 8_000 }),
    /** Gateways that lose the database. */
    count: fc.integer({ min: 1, max: 8 }),
    fate: fc.constantFrom('refused' as const, 'lost' as const, 'unheard' as const),
  }),
})

/** Another time for each call. */
function delaysOf({ least, spread }: { readonly least: number; readonly spread: number }, seed: number): Plan['delay'] {
  return (member, now) => least + ((((now + 7_919 * member + seed) * 2_654_435_761) % 1_000_003) % (spread + 1))
}

/**
 * The bound of src/limits/leased-bucket.ts: requests beyond burst and pace in any window of time.
 *
 * @param alone gateways that limit by their own shares @param gapMs longest time between two asks of theirs at the bucket
 */
function mostOver({ requestsPerMinute, burst }: RateLimit, members: number, alone = 0, gapMs = 0): number {
  const debt = Math.max(1, Math.floor(burst / 100))
  const share = Math.max(1, Math.floor(burst / members)) + (requestsPerMinute / 60_000 / members) * gapMs
  return members * debt + alone * share + 0.01
}

const some = { numRuns: runs(320) }

t.test('the bound holds for any load, round trips of up to a second, and a gateway that dies', async t => {
  fc.assert(
    fc.property(plans, ({ limit, members, delays, seed, pattern, demand, cut }) => {
      const pace = (limit.requestsPerMinute / 60_000 / members) * demand
      const load = patterns[pattern]!(pace)
      const dies = (member: number, now: number) => member === 0 && now >= cut.from && cut.ms > 2_000
      const admitted = simulate({
        ...{ limit, members, delay: delaysOf(delays, seed), ms: 20_000 },
        load: (member, now) => (dies(member, now) ? 0 : load(member, now)),
      })
      return excess(admitted, limit) <= mostOver(limit, members)
    }),
    some,
  )
  t.pass(`${some.numRuns} random plans`)
})

t.test('what gateways admit without the database is charged to the bucket', async t => {
  fc.assert(
    fc.property(plans, ({ limit, members, delays, seed, pattern, demand, cut }) => {
      const pace = limit.requestsPerMinute / 60_000 / members
      const admitted = simulate({
        ...{ limit, members, delay: delaysOf(delays, seed), ms: 30_000 },
        load: patterns[pattern]!(pace * demand),
        fate: (member, now) =>
          member < cut.count && now >= cut.from && now < cut.from + cut.ms ? cut.fate : 'answered',
      })
      // An ask that was answered, the cut, one that is lost at its end, the pause behind that, and the way of the next one.
      const gapMs = 2 * usableMs + cut.ms + callMs + failedMs + usableMs
      return excess(admitted, limit) <= mostOver(limit, members, Math.min(cut.count, members), gapMs)
    }),
    some,
  )
  t.pass(`${some.numRuns} random plans`)
})

t.test('the bound holds for round trips of any length', async t => {
  fc.assert(
    fc.property(
      plans,
      fc.integer({ min: 0, max: 4_000 }),
      ({ limit, members, delays, seed, pattern, demand }, more) => {
        const pace = limit.requestsPerMinute / 60_000 / members
        const delay = delaysOf({ ...delays, spread: delays.spread + more }, seed)
        const admitted = simulate({ limit, members, delay, ms: 30_000, load: patterns[pattern]!(pace * demand) })
        const oneWay = delays.least + delays.spread + more
        // An ask, its answer or the end of the wait for it, a pause, and the way of the next one.
        const gapMs = Math.min(2 * oneWay, callMs) + usableMs + failedMs + oneWay
        return excess(admitted, limit) <= mostOver(limit, members, 2 * oneWay <= usableMs ? 0 : members, gapMs)
      },
    ),
    some,
  )
  t.pass(`${some.numRuns} random plans`)
})

t.test('in the long run an outage adds nothing: what was admitted meanwhile is paid back', async t => {
  for (const fate of ['refused', 'lost'] as const) {
    for (const cut of [1, 3]) {
      const admitted = simulate({
        ...{ limit: usual, members: 3, delay: () => 2, load: () => 0.01, ms: 60_000 },
        fate: (member, now) => (member < cut && now >= 20_000 && now < 30_000 ? fate : 'answered'),
      })
      const most = usual.burst + 600 + 3
      t.ok(admitted.length <= most, `${fate}, ${cut} of 3 cut off: ${admitted.length} of ${most}`)
      t.ok(admitted.length >= 0.95 * most, `${fate}, ${cut} of 3 cut off: ${admitted.length} of ${most}`)
    }
  }
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

t.test(
  'an answer that took longer than a second is not used: the gateway limits by its share, and tells the bucket',
  async t => {
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
    const share = Math.floor(usual.burst / 3)
    for (let n = 0; n < share; n++) t.equal(buckets.take('a', 1_002), 0)
    t.ok(buckets.take('a', 1_002)! > 0, 'it waits for nothing')
    const next = buckets.ask('a', 1_302)
    if (next === undefined) throw new Error('nothing is asked')
    t.match(
      next,
      { want: 1, debt: 0, own: share - 1, paced: 1 },
      'its share has regained one at its pace of 200 a minute',
    )
    buckets.accept(next, { key: 'a', granted: 1, wait: 0, at: 1e12 }, { sent: 1_302, now: 1_310 })
    t.equal(buckets.take('a', 1_311), 0, 'with the token')
    t.match(buckets.ask('a', 1_312), { own: 0, paced: 0, used: 1 }, 'it is told once')
  },
)
