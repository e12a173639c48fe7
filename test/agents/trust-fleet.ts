/** Trust, its daily gain and quarantine are exact over all gateways of a fleet. */

import t, { type Test } from 'tap'
import { openPostgresStore } from '../../src/storage/postgres/open.ts'
import { eventually } from '../fixtures/gateway.ts'
import { createSchema } from '../fixtures/postgres.ts'
import { by, openBench } from '../fixtures/registry.ts'

/** Two registries, each on a store of its own. */
async function start(t: Test) {
  const settings = await createSchema(t)
  const open = async () => {
    const store = await openPostgresStore({ settings })
    t.teardown(() => store.close())
    return openBench({ store })
  }
  const [a, b] = [await open(), await open()]
  const { id } = await a.agent()
  await eventually(() => b.registry.get(id), Boolean)
  return { a: a.registry, b: b.registry, id, store: a.store }
}

t.test('denials by two gateways at the same time count together', async t => {
  const { a, b, id } = await start(t)
  for (let n = 0; n < 9; n++) (n % 2 === 0 ? a : b).recordTrust(id, 'policyDenial', null)
  await Promise.all([a.flush(), b.flush()])
  t.equal(a.get(id)?.status, 'Active', 'nine do not quarantine')
  b.recordTrust(id, 'policyDenial', null)
  await b.flush()
  for (const registry of [a, b])
    t.equal((await eventually(() => registry.get(id), is('Quarantined')))?.status, 'Quarantined')
  await a.transition(id, 'liftQuarantine', by)
  await eventually(() => b.get(id), is('Active'))
  b.recordTrust(id, 'policyDenial', null)
  await b.flush()
  t.equal(b.get(id)?.status, 'Active', 'what was before the lift is forgotten by all')
})

t.test('no judgement of one gateway is lost to another', async t => {
  const { a, b, id, store } = await start(t)
  for (let n = 0; n < 3; n++) for (const registry of [a, b]) registry.recordTrust(id, 'humanApproval', null)
  await Promise.all([a.flush(), b.flush()])
  let wanted = 0.5
  for (let n = 0; n < 6; n++) wanted += 0.04 * (1 - wanted)
  const standing = await store.agents.trust(id)
  t.ok(Math.abs((standing?.trustValue ?? 0) - wanted) < 1e-9, `${standing?.trustValue} is ${wanted}`)
})

t.test('two gateways together give the gain of one day', async t => {
  const { a, b, id, store } = await start(t)
  for (const registry of [a, b, a]) {
    for (let n = 0; n < 100; n++) registry.recordTrust(id, 'success', null)
    await registry.flush()
  }
  const standing = await store.agents.trust(id)
  t.ok(Math.abs((standing?.trustValue ?? 0) - 0.55) < 1e-9, `${standing?.trustValue}`)
})

const is = (status: string) => (agent: { readonly status: string } | undefined) => agent?.status === status
