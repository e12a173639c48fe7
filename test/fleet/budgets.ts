/** T77, budgets: calls of an agent through three gateways, while they come and go. */
import { setTimeout as sleep } from 'node:timers/promises'
import { fault, inCampaign } from '../fixtures/fleet/fault.ts'
import { codeOf } from '../fixtures/fleet/ledger.ts'
import { startLoad } from '../fixtures/fleet/load.ts'
import { eventually } from '../fixtures/gateway.ts'

const limit = inCampaign ? 6_000 : 900
/** In each gateway. */
const callers = 8
const config = { Budgets: [{ Name: 'calls', Unit: 'Calls', Limit: limit, Per: 'Month' }] }

fault(29, 'a budget is used up over three gateways, one is killed, one is cut off', { config }, async (t, fleet) => {
  const { a, b, c, members, upstream } = fleet
  const bot = await fleet.bot()
  const sent = () => upstream.sent.filter(({ agent }) => agent === bot.id).length
  const sum = async (column: string, table: string): Promise<number> => {
    const text = `select coalesce(sum(${column}), 0)::integer as sum from ${table} where holder = $1`
    return (await fleet.db.query(text, [bot.id])).rows[0].sum
  }
  const loads = members.map(member => startLoad(() => fleet.get(member, bot), callers))
  // Else they call on when the test fails, and its file never ends.
  t.teardown(() => Promise.all(loads.map(load => load.end())))
  const until = (count: number) => eventually(sent, made => made >= count)
  await until(limit / 3)
  await c.kill()
  const atKill = sent()
  const leases = await fleet.db.query('select leased::integer from spend_leases where holder = $1', [bot.id])
  const largest = Math.max(...leases.rows.map(({ leased }) => leased))
  await until((2 * limit) / 3)
  b.line.blackHole()
  await sleep(500)
  b.line.heal()
  const [first] = loads
  await first!.refused('budget_exceeded')
  const calls = (await Promise.all(loads.map(load => load.end()))).flat()
  await fleet.heal()
  await eventually(
    () => sum('leased', 'spend_leases'),
    leased => leased === 0,
  )
  const [counted, passed] = [await sum('spent', 'spend'), sent()]
  t.comment(`limit ${limit}, sent ${passed}, counted ${counted}, killed at ${atKill}, largest lease ${largest}`)
  t.ok(passed <= limit, `${passed} of ${limit} were sent`)
  t.ok(counted >= passed, `${counted} are counted of ${passed}`)
  t.ok(counted - passed <= largest + callers, `${counted - passed} were lost with a lease of ${largest} at most`)
  const codes = new Set(calls.filter(({ status }) => ![0, 200].includes(status)).map(codeOf))
  for (const expected of ['budget_exceeded', 'budget_reserved', 'store_unavailable', 'fenced']) codes.delete(expected)
  t.strictSame([...codes], [])
  t.ok(a.isRunning)
})
