import t from 'tap'
import { openRegistry } from '../../src/agents/registry.ts'
import { StoreError } from '../../src/storage/store.ts'
import { by, openBench, openOwn } from '../fixtures/registry.ts'

t.test('a denial lowers the stored trust and is recorded with before, after and cause', async t => {
  const { registry, agent, store } = await openBench()
  const { id } = await agent()
  registry.recordTrust(id, 'policyDenial', 'request-7')
  await registry.flush()
  t.equal(registry.trustOf(registry.get(id)!), 0.48)
  const { items } = await store.audit.list({ page: 1, pageSize: 1 })
  t.match(items[0], {
    actor: 'gateway',
    action: 'agent.trust',
    subject: id,
    requestId: 'request-7',
    details: { trustBefore: 0.5, trustAfter: 0.48, causes: { policyDenial: 1 } },
  })
})

t.test('trust drifts back as time passes, without a write', async t => {
  const { registry, agent, clock, store } = await openBench()
  const { id } = await agent()
  registry.recordTrust(id, 'humanDenial', null)
  await registry.flush()
  const { totalCount } = await store.audit.list({ page: 1, pageSize: 1 })
  clock.advance(7 * 86_400_000)
  t.equal(registry.trustOf(registry.get(id)!), 0.475)
  t.equal((await store.audit.list({ page: 1, pageSize: 1 })).totalCount, totalCount)
})

t.test('low trust with two kinds of causes quarantines the agent, and a restart keeps it so', async t => {
  const { registry, agent, store, reopen } = await openBench()
  const { id } = await agent()
  for (let i = 0; i < 3; i++) registry.recordTrust(id, 'secretDetected', `r${i}`)
  await registry.flush()
  t.equal(registry.get(id)?.status, 'Active', 'one kind alone does not')
  registry.recordTrust(id, 'humanDenial', 'r2')
  await registry.flush()
  t.equal(registry.get(id)?.status, 'Quarantined')
  t.equal((await reopen()).get(id)?.status, 'Quarantined')
  const { items } = await store.audit.list({ page: 1, pageSize: 1 })
  t.match(items[0], { action: 'agent.quarantine', actor: 'gateway', requestId: 'r2', details: { cause: 'trust' } })
})

t.test('ten denials in a row quarantine, and a lifted quarantine does not come back at once', async t => {
  const { registry, agent } = await openBench()
  const { id } = await agent()
  for (let i = 0; i < 10; i++) registry.recordTrust(id, 'policyDenial', null)
  await registry.flush()
  t.equal(registry.get(id)?.status, 'Quarantined')
  t.match(await registry.transition(id, 'liftQuarantine', by), { status: 'Active', trustValue: 0.35 })
  registry.recordTrust(id, 'policyDenial', null)
  await registry.flush()
  t.match(registry.get(id), { status: 'Active', trustValue: 0.32999999999999996 })
})

t.test('a storm of events on one agent makes a few writes, and loses none', async t => {
  const { registry, agent, store } = await openBench({ quarantine: { below: 0, denials: 0, windowMs: 1 } })
  const { id } = await agent()
  for (let i = 0; i < 10_000; i++) registry.recordTrust(id, 'secretDetected', null)
  await registry.flush()
  const { items } = await store.audit.list({ page: 1, pageSize: 200 }, { action: 'agent.trust', subject: id })
  t.ok(items.length < 5, `${items.length} writes`)
  const noted = items.map(({ details }) => (details as { causes: { secretDetected: number } }).causes.secretDetected)
  t.equal(
    noted.reduce((sum, count) => sum + count, 0),
    10_000,
  )
  t.match(items.at(-1)?.details, { trustBefore: 0.5 })
  t.match(items[0]?.details, { trustAfter: 0 })
  registry.recordTrust(id, 'policyDenial', null)
  await registry.flush()
  t.equal(registry.get(id)?.trustValue, 0)
})

t.test('successes are summed up before they are written, and written at shutdown', async t => {
  const { registry, agent, store } = await openBench()
  const { id } = await agent()
  for (let i = 0; i < 4; i++) registry.recordTrust(id, 'success', null)
  t.equal((await store.audit.list({ page: 1, pageSize: 1 }, { action: 'agent.trust', subject: id })).totalCount, 0)
  await registry.flush()
  const { items } = await store.audit.list({ page: 1, pageSize: 10 }, { action: 'agent.trust', subject: id })
  t.match(items, [{ details: { causes: { success: 4 } } }])
  for (let i = 0; i < 1_000; i++) registry.recordTrust(id, 'success', null)
  await registry.flush()
  t.equal(registry.trustOf(registry.get(id)!), 0.55)
})

t.test('an agent that is unknown or out of service neither gains nor loses', async t => {
  const { registry, agent, store } = await openBench()
  const { id } = await agent()
  await registry.transition(id, 'deactivate', by)
  registry.recordTrust(id, 'humanDenial', null)
  registry.recordTrust('unknown', 'humanDenial', null)
  await registry.flush()
  t.equal((await store.audit.list({ page: 1, pageSize: 1 }, { action: 'agent.trust', subject: id })).totalCount, 0)
})

t.test('an agent deactivated in between loses trust but is not quarantined', async t => {
  const { registry, agent } = await openBench()
  const { id } = await agent()
  const deactivated = registry.transition(id, 'deactivate', by)
  for (let i = 0; i < 10; i++) registry.recordTrust(id, 'humanDenial', null)
  await deactivated
  await registry.flush()
  t.equal(registry.get(id)?.status, 'Inactive')
  t.ok(registry.get(id)!.trustValue < 0.2)
})

t.test('a change of trust that cannot be stored is reported and stops nothing', async t => {
  const store = await openOwn(t)
  const { clock, secrets, agent } = await openBench({ store })
  const { id } = await agent()
  const errors: unknown[] = []
  const registry = await openRegistry({
    store,
    clock,
    secrets,
    defaultPolicy: undefined,
    quarantine: { below: 0.2, denials: 10, windowMs: 1 },
    onError: error => errors.push(error),
  })
  await store.close()
  registry.recordTrust(id, 'policyDenial', null)
  await registry.flush()
  t.ok(errors[0] instanceof StoreError)
  t.equal(registry.get(id)?.trustValue, 0.5)
})
