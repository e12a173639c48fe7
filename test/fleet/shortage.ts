/** A database that answers, but not enough. */
import { fault } from '../fixtures/fleet/fault.ts'
import { codeOf, tookOf } from '../fixtures/fleet/ledger.ts'
import { startLoad, until } from '../fixtures/fleet/load.ts'

const setup = { config: { Storage: { PostgreSQL: { PoolSize: 1 } } } }

fault(20, 'a pool of one connection is busy', setup, async (t, fleet) => {
  const { a, b } = fleet
  const [bot, locked, other] = [await fleet.bot(), await fleet.bot(), await fleet.bot()]
  const reads = startLoad(() => fleet.get(a, bot))
  await reads.answered(10)
  // Whoever holds the row, the revocation waits for it.
  const blocked = fleet.db.query(
    `begin; select from agents where id = '${locked.id}' for update; select pg_sleep(3); commit`,
  )
  const end = performance.now() + 2_500
  const busy = startLoad(() => fleet.revoke(a, locked), 2)
  await until(performance.now() + 200)
  const writes = startLoad(() => fleet.register(a), 2)
  fleet.within(0)
  const revoked = await fleet.revoke(b, other)
  t.equal(revoked.status, 200)
  t.ok(tookOf(revoked) <= fleet.within(600), `in force in all after ${tookOf(revoked)} ms`)
  await until(end)
  await blocked
  const late = fleet.within(2_000)
  const refused = [...(await busy.end()), ...(await writes.end())].filter(({ status }) => status === 503)
  t.same([...new Set(refused.map(codeOf))], ['store_unavailable'])
  t.same(
    refused.map(tookOf).filter(ms => ms > late),
    [],
  )
  t.same([...new Set((await reads.end()).map(({ status }) => status))], [200])
})
