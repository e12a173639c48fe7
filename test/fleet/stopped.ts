/** Gateways that stop for a while, as a paused machine does. */
import { fault } from '../fixtures/fleet/fault.ts'
import { fenceMs, heldId, leftOutMs } from '../fixtures/fleet/fleet.ts'
import { codeOf, tookOf } from '../fixtures/fleet/ledger.ts'
import { startLoad, until } from '../fixtures/fleet/load.ts'

fault(6, 'a gateway stops for 2 L under load, and an agent is revoked meanwhile', {}, async (t, fleet) => {
  const { a, b } = fleet
  const bot = await fleet.bot()
  const load = startLoad(() => fleet.get(a, bot))
  await load.answered(20)
  const paused = performance.now()
  a.pause()
  const revoked = await fleet.revoke(b, bot)
  t.equal(revoked.status, 200)
  t.ok(tookOf(revoked) <= fleet.within(leftOutMs + 200), `answered after ${tookOf(revoked)} ms`)
  await until(revoked.begun + 2 * fenceMs)
  a.resume()
  await load.answered(20)
  // What had reached the upstream before the stop is still answered.
  const late = (await load.end()).filter(({ begun, ended }) => begun > paused && ended > revoked.ended)
  const sent = fleet.upstream.sent.filter(({ agent, at }) => agent === bot.id && at > revoked.ended)
  t.strictSame(sent, [])
  t.strictSame(
    late.filter(({ status }) => status < 400),
    [],
  )
  t.ok(late.some(call => codeOf(call) === 'fenced'))
})

fault(7, 'a gateway stops in a transaction in which it approves', {}, async (t, fleet) => {
  const { a, b } = fleet
  const bot = await fleet.bot()
  const id = heldId(await fleet.hold(b, bot))
  const stopped = new Promise<void>(resolve => {
    a.line.onSend = data => {
      if (!data.includes('for update')) return true
      a.pause()
      resolve()
      return true
    }
  })
  const lost = fleet.approve(a, id)
  await stopped
  const approved = await fleet.approve(b, id)
  t.equal(approved.status, 200, approved.text)
  t.ok(tookOf(approved) <= fleet.within(1_200), `answered after ${tookOf(approved)} ms`)
  await until(approved.begun + 2 * fenceMs)
  a.line.onSend = () => true
  a.resume()
  t.ok([409, 503].includes((await lost).status))
  t.equal(fleet.sendingsOf(id).length, 1)
})
