/** Gateways that cannot reach the database, and are told nothing. */
import { fault, inCampaign } from '../fixtures/fleet/fault.ts'
import { fenceMs, leftOutMs } from '../fixtures/fleet/fleet.ts'
import { codeOf, tookOf } from '../fixtures/fleet/ledger.ts'
import { startLoad, until } from '../fixtures/fleet/load.ts'

const holeMs = inCampaign ? 60_000 : 2 * fenceMs

fault(9, 'a gateway falls into a black hole', {}, async (t, fleet) => {
  const { a } = fleet
  const bot = await fleet.bot()
  const load = startLoad(() => fleet.get(a, bot))
  await load.answered(20)
  const start = performance.now()
  a.line.blackHole()
  await until(start + holeMs)
  const allowance = fleet.within(0)
  a.line.heal()
  const healed = performance.now()
  await load.succeeds(healed)
  await load.answered(20)
  const calls = await load.end()
  const meanwhile = calls.filter(({ begun }) => begun > start && begun < healed)
  const served = meanwhile.filter(({ status }) => status === 200)
  const last = Math.max(...served.map(({ begun }) => begun))
  t.ok(last <= start + fenceMs + allowance, `served for ${last - start} ms`)
  t.ok(last >= start + fenceMs / 2 - allowance, `served for ${last - start} ms`)
  const refused = meanwhile.filter(({ status }) => status !== 200)
  t.strictSame([...new Set(refused.map(call => `${call.status} ${codeOf(call)}`))], ['503 fenced'])
  const back = calls.find(({ begun, status }) => begun > healed && status === 200)!
  t.ok(back.ended - healed <= fleet.within(2_000), `back after ${back.ended - healed} ms`)
  const sent = fleet.upstream.sent.filter(({ agent }) => agent === bot.id)
  t.equal(sent.length, calls.filter(({ status }) => status === 200).length, 'no burst at the upstream')
})

fault(10, 'an agent is revoked while a gateway is in a black hole', {}, async (t, fleet) => {
  const { a, b } = fleet
  const bot = await fleet.bot()
  const load = startLoad(() => fleet.get(a, bot))
  await load.answered(20)
  a.line.blackHole()
  const revoked = await fleet.revoke(b, bot)
  t.equal(revoked.status, 200)
  t.ok(tookOf(revoked) <= fleet.within(leftOutMs + 200), `answered after ${tookOf(revoked)} ms`)
  t.ok((await fleet.get(a, bot)).status === 503)
  a.line.heal()
  await load.refused('agent_revoked')
  const late = (await load.end()).filter(({ begun }) => begun > revoked.ended)
  t.strictSame([...new Set(late.map(codeOf))].sort(), ['agent_revoked', 'fenced'])
  const sent = fleet.upstream.sent.filter(({ agent, at }) => agent === bot.id && at > revoked.ended)
  t.strictSame(sent, [])
})

fault(13, 'notifications are lost', {}, async (t, fleet) => {
  const { a, b, members } = fleet
  for (const { line } of members) {
    // They listen to another channel of the same length, on which nobody speaks.
    line.onSend = data => {
      const at = data.indexOf('listen "agent_gateway')
      if (at >= 0) data.write('q', at + 'listen "'.length)
      return true
    }
    line.cut()
  }
  const bot = await fleet.bot()
  await until(performance.now() + 1_000)
  fleet.within(0)
  const revoked = await fleet.revoke(b, bot)
  t.equal(revoked.status, 200)
  t.ok(tookOf(revoked) <= fleet.within(600), `in force in all after ${tookOf(revoked)} ms`)
  t.equal((await fleet.get(a, bot)).status, 403)
})
