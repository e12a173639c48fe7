/** A database that answers, but not enough. */
import { fault, inCampaign } from '../fixtures/fleet/fault.ts'
import { type Call, codeOf, outcomes, tookOf } from '../fixtures/fleet/ledger.ts'
import { startLoad, until } from '../fixtures/fleet/load.ts'
import { eventually } from '../fixtures/gateway.ts'

const onePooled = { config: { Storage: { PostgreSQL: { PoolSize: 1 } } } }

fault(20, 'a pool of one connection is busy', onePooled, async (t, fleet) => {
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
  t.strictSame([...new Set(refused.map(codeOf))], ['store_unavailable'])
  t.strictSame(
    refused.map(tookOf).filter(ms => ms > late),
    [],
  )
  t.strictSame([...new Set((await reads.end()).map(({ status }) => status))], [200])
})

const [all, perAgent] = inCampaign ? [1_000, 250] : [40, 10]
const caps = { config: { HumanInTheLoop: { MaxPendingRequests: all, MaxPendingPercentPerAgent: 25 } } }

fault(23, `more suspensions than the caps leave room for, in three gateways at once`, caps, async (t, fleet) => {
  const bots = await Promise.all(Array.from({ length: 6 }, () => fleet.bot()))
  const load = bots.map(bot => {
    let turn = 0
    return startLoad(() => fleet.hold(fleet.members[turn++ % 3]!, bot), 6)
  })
  const full = ({ status, begun }: Call) => status === 429 && begun > start
  let start = 0
  // Each agent is refused in all gateways again and again: nothing more gets in.
  for (let round = 0; round < 2; round++) {
    start = performance.now()
    await Promise.all(
      load.map(one =>
        eventually(
          () => one.calls.filter(full).length,
          count => count > 20,
        ),
      ),
    )
  }
  const calls = (await Promise.all(load.map(one => one.end()))).flat()
  const { rows } = await fleet.db.query(
    `select "agentId", count(*)::int as waiting from hitl where status = 'Pending' group by "agentId"`,
  )
  t.equal(
    rows.reduce((sum, { waiting }) => sum + waiting, 0),
    all,
  )
  t.strictSame(
    rows.filter(({ waiting }) => waiting > perAgent),
    [],
  )
  // On a busy machine calls of the database may take too long.
  const late = ['503 fenced', '503 store_unavailable']
  t.strictSame(
    outcomes(calls).filter(outcome => !late.includes(outcome)),
    ['202', '429 hitl_queue_full'],
  )
})
