/** The buckets of rate limits in the database do what their model does. */
import fc from 'fast-check'
import t, { type Test } from 'tap'
import { DatabaseConnections } from '../../src/storage/postgres/connection.ts'
import { openPostgresStore } from '../../src/storage/postgres/open.ts'
import { leaseTokens } from '../../src/storage/postgres/rates.ts'
import { type Bucket, fullBucket, leaseFrom } from '../fixtures/fleet-bucket.ts'
import { createSchema } from '../fixtures/postgres.ts'

async function open(t: Test) {
  const settings = await createSchema(t)
  const store = await openPostgresStore({ settings })
  t.teardown(() => store.close())
  const connections = new DatabaseConnections(settings)
  t.teardown(() => connections.close())
  return { store, connections }
}

const few = fc.integer({ min: 0, max: 12 })
const calls = fc.array(
  fc.record({
    key: fc.constantFrom('a', 'b'),
    pause: fc.oneof(fc.integer({ min: 0, max: 300 }), fc.integer({ min: 0, max: 9_000 })),
    ...{ want: few, used: few, returned: few, debt: fc.integer({ min: -3, max: 3 }) },
    ...{ own: few, paced: few },
    isSpent: fc.boolean(),
    /** How long ago the last lease was. */
    age: fc.integer({ min: 0, max: 3_000 }),
  }),
  { minLength: 1, maxLength: 25 },
)

t.test('the database leases what the model leases', async t => {
  const { connections } = await open(t)
  let run = 0
  await fc.assert(
    fc.asyncProperty(calls, fc.integer({ min: 1, max: 60 }), async (list, burst) => {
      const limit = { requestsPerMinute: 600, burst }
      const buckets = new Map<string, Bucket>()
      run += 1
      let at = 1e12
      for (const { key: name, pause, age, ...ask } of list) {
        at += pause
        const key = `${name}${run}`
        const asked = { ...ask, key, leasedAt: at - age }
        const bucket = buckets.get(key) ?? fullBucket(limit, at)
        buckets.set(key, bucket)
        const wanted = leaseFrom(bucket, asked, limit, at)
        const [got] = await leaseTokens(connections, { limit, asks: [asked], at })
        if (got?.granted !== wanted.granted || Math.abs(got.wait - wanted.wait) > 1e-3) {
          throw new Error(`${JSON.stringify(got)} is not ${JSON.stringify(wanted)}`)
        }
      }
    }),
    { numRuns: 40 },
  )
  t.pass('40 random sequences of calls')
})

t.test('gateways that lease at the same time get each token once', async t => {
  const { store, connections } = await open(t)
  const ask = (key: string) => ({ key, want: 2, used: 0, returned: 0, debt: 0, leasedAt: 0 })
  const limit = { requestsPerMinute: 1, burst: 100 }
  const answers = await Promise.all(
    Array.from({ length: 40 }, (_, n) => {
      const asks = n % 2 === 0 ? [ask('a'), ask('b')] : [ask('b'), ask('a')]
      return n % 3 === 0 ? store.lease({ limit, asks }) : leaseTokens(connections, { limit, asks })
    }),
  )
  const sum = (key: string) => answers.flat().reduce((all, one) => all + (one.key === key ? one.granted : 0), 0)
  t.strictSame([sum('a'), sum('b')], [80, 80])
  const more = await Promise.all(Array.from({ length: 40 }, () => store.lease({ limit, asks: [ask('a')] })))
  t.equal(sum('a') + more.flat().reduce((all, one) => all + one.granted, 0), 100)
})
