/** An older copy of the data takes the place of what gateways have seen. */
import { fault } from '../fixtures/fleet/fault.ts'
import { heldId } from '../fixtures/fleet/fleet.ts'
import { codeOf } from '../fixtures/fleet/ledger.ts'
import { eventually } from '../fixtures/gateway.ts'
import { copyTables } from '../fixtures/postgres-faults.ts'

fault(18, 'an older copy of the data is put back', { ownServer: {} }, async (t, fleet) => {
  const { a, b, members } = fleet
  const [bot, revoked] = [await fleet.bot(), await fleet.bot()]
  const sent = heldId(await fleet.hold(a, bot))
  const putBack = await copyTables(fleet.db)
  const kept = fleet.calls.length
  t.equal((await fleet.revoke(b, revoked)).status, 200)
  t.equal((await fleet.approve(b, sent)).status, 200)
  await putBack()
  const start = performance.now()
  for (const member of members) {
    await eventually(
      () => fleet.get(member, bot),
      call => codeOf(call) === 'fenced',
    )
  }
  t.ok(performance.now() - start <= fleet.within(1_000), 'all stop with their next turn')
  t.equal((await fleet.get(a, revoked)).status, 503)
  t.match(members.map(({ log }) => log()).join(), /The database has lost history: .*record \d+ was there/)
  await members[2].stop()
  await t.rejects(members[2].start(), /fleet accept/, 'a start is refused')
  // What was answered since the copy is lost: the trail has none of it.
  fleet.calls.splice(kept)

  t.match(await a.command('fleet', 'accept'), /1 requests may have been sent/)
  const accepted = performance.now()
  for (const member of [a, b]) {
    await eventually(
      () => fleet.get(member, bot),
      ({ status }) => status === 401,
    )
  }
  t.ok(
    performance.now() - accepted <= fleet.within(2_000),
    'they serve again without a restart, and old tokens are void',
  )
  await fleet.signIn()
  t.equal((await fleet.approve(b, sent)).status, 409, 'it may have been sent')
  t.equal(fleet.sendingsOf(sent).length, 1)
  // The copy has no claim for it.
  fleet.upstream.sent.splice(0)
  t.equal((await fleet.revoke(b, revoked)).status, 200, 'it was active again')
})
