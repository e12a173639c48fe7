/** Commits that no standby confirms. */
import { fault, inCampaign } from '../fixtures/fleet/fault.ts'
import { fenceMs, heldId } from '../fixtures/fleet/fleet.ts'
import { type Call, outcomes } from '../fixtures/fleet/ledger.ts'
import { startLoad, until } from '../fixtures/fleet/load.ts'
import { eventually } from '../fixtures/gateway.ts'
import { cancelCommits, setStandbys } from '../fixtures/postgres-faults.ts'

for (const how of ['hang', 'hang, and are cancelled']) {
  fault(17, `commits ${how}`, { ownServer: {} }, async (t, fleet) => {
    const { a, b, db, members } = fleet
    const bot = await fleet.bot()
    const id = heldId(await fleet.hold(a, bot))
    const reads = startLoad(() => fleet.get(a, bot))
    let turn = 0
    const writes = startLoad(() => fleet.register(members[turn++ % 3]!), 6)
    await writes.answered(10)
    await setStandbys(db, 'nobody')
    const start = performance.now()
    fleet.within(0)
    const approved = fleet.approve(b, id)
    const end = start + (inCampaign ? 8_000 : 2 * fenceMs)
    let cancelled = 0
    while (how.includes('cancelled') && performance.now() < end) {
      cancelled += await cancelCommits(db)
      await until(performance.now() + 50)
    }
    t.ok(how === 'hang' || cancelled > 0, `${cancelled} were cancelled`)
    await until(end)
    t.equal((await approved).status, 503)
    t.equal(fleet.sendingsOf(id).length, 0)
    const allowance = fleet.within(0)
    const ended = performance.now()
    await setStandbys(db, '')
    const up = performance.now()
    for (const load of [reads, writes]) {
      const back = await load.succeeds(up)
      t.ok(back.ended - up <= fleet.within(3_000), `back after ${back.ended - up} ms`)
    }
    const meanwhile = (call: Call) => call.begun > start && call.ended < ended
    const refused = (await writes.end()).filter(meanwhile)
    // Both limits are 2 s: either may be first.
    const other = outcomes(refused).filter(outcome => !['503 fenced', '503 store_unavailable'].includes(outcome))
    t.strictSame(other, [])
    t.ok(refused.length > 0, `${refused.length} were refused`)
    const served = (await reads.end()).filter(call => meanwhile(call) && call.status === 200)
    const last = Math.max(...served.map(({ begun }) => begun - start))
    t.ok(last <= fenceMs + allowance, `served for ${last} ms`)
    // The claim in doubt is taken back, or lapses when that does not get through either: nothing was sent.
    let resend = false
    const again = await eventually(
      () => {
        resend = !resend
        return fleet.approve(a, id, { resend })
      },
      ({ status }) => status === 200,
    )
    t.equal(again.status, 200)
    t.equal(fleet.sendingsOf(id).length, 1)
  })
}
