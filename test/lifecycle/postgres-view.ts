/** What each of several gateways shows of all, and says about differences. */

import t from 'tap'
import { createClock } from '../fixtures/clock.ts'
import { eventually, merge, onDatabase, startGateway, type TestGateway } from '../fixtures/gateway.ts'
import { createSchema, leaveMember } from '../fixtures/postgres.ts'
import { scrape } from '../fixtures/scrape.ts'

interface Member {
  readonly name: string
  readonly state: string
  readonly lag: number | null
  readonly addresses: readonly string[]
  readonly differs: readonly string[]
  readonly isThis: boolean
}

async function fleetOf({ manage }: TestGateway): Promise<readonly Member[]> {
  const { status, text } = await manage('GET', '/fleet')
  if (status !== 200) throw new Error(text)
  return JSON.parse(text).members
}

t.test('a gateway alone shows itself', async t => {
  const gateway = await startGateway(t, { config: { Storage: { Provider: 'Sqlite' }, Fleet: { Name: 'alone' } } })
  t.match(await fleetOf(gateway), [
    { name: 'alone', state: 'Serving', lag: 0, addresses: [gateway.url], differs: [], isThis: true },
  ])
})

t.test('each gateway shows all: who serves, who is behind, and what differs', async t => {
  const settings = await createSchema(t)
  const clock = createClock()
  const configOf = (Name: string, more = {}) => ({
    ...merge(onDatabase(settings), { Fleet: { Name, FenceAfterSeconds: 5 } }),
    ...more,
  })
  const a = await startGateway(t, { config: configOf('a'), clock })
  const b = await startGateway(t, { config: configOf('b', { Risk: { BurstPerMinute: 7 }, Policies: [] }) })
  const shown = await eventually(
    () => fleetOf(a),
    members => members.length === 2 && members[1]!.differs.length === 2 && members[1]!.addresses.length > 0,
  )
  t.match(shown, [
    { name: 'a', state: 'Serving', addresses: [a.url], differs: [], isThis: true },
    {
      name: 'b',
      state: 'Serving',
      addresses: [b.url],
      differs: ['settings under Risk', 'policy files'],
      isThis: false,
    },
  ])
  t.match(await fleetOf(b), [{ isThis: false }, { isThis: true }])

  const warnings = () =>
    a.log.filter(({ gateway }) => gateway === 'b').map(({ level, reason }) => `${level}: ${reason}`)
  t.strictSame(warnings(), [])
  const afterMinutes = () => {
    clock.advance(60_000)
    return warnings()
  }
  t.strictSame(await eventually(afterMinutes, ({ length }) => length === 2), [
    'warn: settings under Risk differ',
    'warn: policy files differ',
  ])
  const page = async () => scrape((await a.manage('GET', '/metrics')).text).values
  const values = await page()
  t.equal(values.get('agent_gateway_fleet_members'), 2)
  t.equal(values.get('agent_gateway_fleet_differences'), 2)
  t.equal(values.get('agent_gateway_fleet_fenced'), 0)
  t.equal(values.get('agent_gateway_fleet_lag_changes'), 0)
  const connections = ['busy', 'idle'].map(state => values.get(`agent_gateway_store_connections{state="${state}"}`))
  t.ok(connections[0]! + connections[1]! >= 1, String(connections))

  await leaveMember(settings.admin, 'dead')
  const dead = async () => (await fleetOf(b)).find(({ name }) => name === 'dead')?.state
  t.equal(await eventually(dead, state => state === 'Fenced'), 'Fenced')
  t.equal(await eventually(dead, state => state === undefined), undefined, 'its row is removed')
})
