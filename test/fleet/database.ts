/** Faults of the server that all gateways share. */
import { fault, inCampaign } from '../fixtures/fleet/fault.ts'
import { type Fleet, fenceMs, heldId } from '../fixtures/fleet/fleet.ts'
import { type Call, outcomes, tookOf } from '../fixtures/fleet/ledger.ts'
import { startLoad, until } from '../fixtures/fleet/load.ts'

/** New agents, in each gateway. */
function startWrites(fleet: Fleet) {
  let turn = 0
  return startLoad(() => fleet.register(fleet.members[turn++ % 3]!), 6)
}

for (const how of ['killed', 'restarted']) {
  const setup = { long: how === 'restarted', ownServer: {}, config: { Fleet: { FenceAfterSeconds: 10 } } }
  fault(14, `the server is ${how}, with a fence of 10 s`, setup, async (t, fleet) => {
    const { a, server } = fleet
    const bot = await fleet.bot()
    const reads = startLoad(() => fleet.get(a, bot))
    const writes = startWrites(fleet)
    await writes.answered(10)
    if (how === 'killed') await server!.kill()
    await server!.restart()
    const up = performance.now()
    const back = await writes.succeeds(up)
    t.ok(back.ended - up <= fleet.within(2_000), `writes again after ${back.ended - up} ms`)
    await writes.answered(10)
    t.strictSame(outcomes(await reads.end()), ['200'])
    t.strictSame(outcomes(await writes.end()), ['201', '503 store_unavailable'])
  })
}

fault(15, 'the server stops for a while', { ownServer: {} }, async (t, fleet) => {
  const { a, server } = fleet
  const bot = await fleet.bot()
  const reads = startLoad(() => fleet.get(a, bot))
  const writes = startWrites(fleet)
  await writes.answered(10)
  const start = performance.now()
  server!.pause()
  await until(start + (inCampaign ? 30_000 : 2 * fenceMs))
  const allowance = fleet.within(0)
  server!.resume()
  const up = performance.now()
  for (const load of [reads, writes]) {
    const back = await load.succeeds(up)
    t.ok(back.ended - up <= fleet.within(3_000), `back after ${back.ended - up} ms`)
  }
  const meanwhile = ({ begun, ended }: Call) => begun > start && ended < up
  const served = (await reads.end()).filter(call => meanwhile(call) && call.status === 200)
  const last = Math.max(...served.map(({ begun }) => begun - start))
  t.ok(last <= fenceMs + allowance && last > fenceMs / 2, `served for ${last} ms`)
  const refused = (await writes.end()).filter(meanwhile)
  t.strictSame(outcomes(refused), ['503 fenced', '503 store_unavailable'])
  t.strictSame(refused.filter(call => tookOf(call) > 2_000 + allowance).map(tookOf), [])
})

fault(16, 'connections are terminated every 50 ms', {}, async (t, fleet) => {
  const { members } = fleet
  const bot = await fleet.bot()
  const held: string[] = []
  const load = startLoad(async () => {
    const [one, other] = [0, 1].map(() => members[Math.floor(Math.random() * 3)]!)
    const [id] = held.splice(0, 1)
    if (id !== undefined && Math.random() < 0.6) return fleet.approve(one!, id)
    const call = await fleet.hold(other!, bot)
    // Twice: two gateways may be asked to send it.
    if (call.status === 202) held.push(heldId(call), heldId(call))
    return call
  }, 8)
  await load.answered(10)
  const end = performance.now() + (inCampaign ? 20_000 : 3_000)
  while (performance.now() < end) {
    await fleet.terminateConnections()
    await until(performance.now() + 50)
  }
  await load.succeeds(performance.now())
  const found = outcomes(await load.end())
  const truthful = ['200', '202', '409 already_decided', '503 fenced', '503 store_unavailable', '503 hitl_in_flight']
  t.strictSame(
    found.filter(outcome => !truthful.includes(outcome)),
    [],
  )
})
