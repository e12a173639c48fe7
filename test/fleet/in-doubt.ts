/** Commits whose answers do not come: their callers are told so, and what they find then stays true. */
import { fault } from '../fixtures/fleet/fault.ts'
import { heldId, leftOutMs } from '../fixtures/fleet/fleet.ts'
import { codeOf, tookOf } from '../fixtures/fleet/ledger.ts'
import { atCommit } from '../fixtures/fleet/member.ts'
import { eventually } from '../fixtures/gateway.ts'

fault(11, 'a gateway is cut off as its COMMIT leaves', {}, async (t, fleet) => {
  const { a, b } = fleet
  const bot = await fleet.bot()
  const dead = async (): Promise<number> => {
    const { rows } = await fleet.db.query(`select count(*)::int as dead from writes where outcome = 'dead'`)
    return rows[0].dead
  }
  for (let round = 0; round < 6; round++) {
    const passes = round % 2 === 0
    const document = { name: `policy-${round}`, default: 'Deny' }
    const before = await dead()
    atCommit(a, { of: 'policy.create', passes }, a.line.cut)
    const lost = await fleet.manage(a, 'POST', '/policies', document)
    t.equal(`${lost.status} ${codeOf(lost)}`, '503 store_unavailable')
    t.ok(tookOf(lost) <= fleet.within(2_000), `answered after ${tookOf(lost)} ms`)
    const again = await eventually(
      () => fleet.manage(b, 'POST', '/policies', document),
      ({ status }) => status !== 503,
    )
    const isThere = again.status === 409
    const after = await eventually(dead, count => isThere || count > before)
    // Committed, or never to be. The server may notice that its client is gone before it has come to COMMIT.
    t.ok(isThere ? passes : again.status === 201 && after > before, `${again.status}, ${before} and ${after} dead`)
  }
  for (const passes of [true, false]) {
    const id = heldId(await fleet.hold(b, bot))
    atCommit(a, { of: 'hitl.approve', passes }, a.line.cut)
    t.equal((await fleet.approve(a, id)).status, 503)
    const again = await eventually(
      () => fleet.approve(b, id),
      ({ status }) => status === 200,
    )
    t.equal(again.status, 200)
    t.equal(fleet.sendingsOf(id).length, 1)
  }
})

fault(12, 'a gateway loses the database right after the commit of its revocation', {}, async (t, fleet) => {
  const { a } = fleet
  const bot = await fleet.bot()
  a.line.onSend = data => {
    if (!data.includes('notify')) return true
    a.line.blackHole()
    return false
  }
  const revoked = await fleet.revoke(a, bot)
  t.equal(revoked.status, 200)
  t.ok(tookOf(revoked) <= fleet.within(leftOutMs + 200), `answered after ${tookOf(revoked)} ms`)
  for (const member of fleet.members) t.not((await fleet.get(member, bot)).status, 200)
})
