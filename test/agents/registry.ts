import fc from 'fast-check'
import t from 'tap'
import type { Registry } from '../../src/agents/registry.ts'
import { isRefusal } from '../../src/base/refusals.ts'
import { type AgentRecord, type Store, StoreError } from '../../src/storage/store.ts'
import { by, openBench, openOwn, secret } from '../fixtures/registry.ts'

const nobody = '00000000-0000-4000-8000-000000000000'
const everything = (registry: Registry) => registry.values()

/** Each answer to an update comes later than the one after it would. */
function withLateAnswers(store: Store): Store {
  let turns = 30
  async function update(...args: Parameters<Store['agents']['update']>) {
    const result = await store.agents.update(...args)
    turns -= 10
    for (let i = 0; i < turns; i++) await new Promise(done => setTimeout(done, 1))
    return result
  }
  return { ...store, agents: { ...store.agents, update } }
}

t.test('a registered agent is found by its id in any letter case, and after a restart', async t => {
  const { registry, agent, reopen } = await openBench()
  const made = await agent({ name: 'Crawler', tags: { team: 'x' } })
  t.strictSame(registry.get(made.id.toUpperCase()), made)
  t.strictSame((await reopen()).get(made.id), made)
  t.match(made, { name: 'Crawler', status: 'Active', roles: ['agent'], policyName: null, trustValue: 0.5 })
})

t.test('a new agent gets the default policy unless the registration names one', async t => {
  const { agent } = await openBench({ defaultPolicy: 'default' })
  t.equal((await agent()).policyName, 'default')
  t.equal((await agent({ policyName: 'other' })).policyName, 'other')
})

t.test('a secret that bcrypt cannot hold whole is refused, and nothing is stored', async t => {
  const { registry, reopen } = await openBench()
  for (const clientSecret of ['', 'a'.repeat(73), 'ä'.repeat(37), 'a\0b', '\ud800']) {
    const result = await registry.register({ name: 'a', ownerId: 'o', clientSecret }, by)
    t.match(result, { refusal: 'invalid_body', status: 400, errors: [{ field: 'clientSecret' }] })
  }
  t.equal((await reopen()).values().length, 0)
})

t.test('only the right secret of the right agent is verified', async t => {
  const { registry, agent } = await openBench()
  const { id } = await agent()
  const other = await agent({ clientSecret: 'b'.repeat(72) })
  t.equal(await registry.verifySecret(id.toUpperCase(), secret), true)
  t.equal(await registry.verifySecret(id, `${secret} `), false)
  t.equal(await registry.verifySecret(other.id, secret), false)
  t.equal(await registry.verifySecret(other.id, 'b'.repeat(72)), true)
  t.equal(await registry.verifySecret(other.id, 'b'.repeat(73)), false)
  t.equal(await registry.verifySecret(nobody, secret), false)
})

t.test('a rotated secret is new, works at once, and ends the old one', async t => {
  const { registry, agent, store } = await openBench()
  const { id } = await agent()
  const rotated = await registry.rotateSecret(id, by)
  if (isRefusal(rotated)) throw new TypeError(rotated.detail)
  t.equal(await registry.verifySecret(id, rotated.clientSecret), true)
  t.equal(await registry.verifySecret(id, secret), false)
  const trail = JSON.stringify(await store.audit.list({ page: 1, pageSize: 10 }))
  t.match(trail, 'agent.rotateSecret')
  t.notMatch(trail, rotated.clientSecret)
  t.notMatch(trail, /\$2[aby]\$/)
  t.match(await registry.rotateSecret(nobody, by), { refusal: 'not_found' })
})

t.test('policy, roles and subject change at once, and each change is recorded', async t => {
  const { registry, agent, store } = await openBench()
  const { id } = await agent()
  await registry.setPolicy(id, 'p', by)
  await registry.setRoles(id, ['admin', 'reviewer', 'admin'], by)
  await registry.setExternalSubject(id, 'subject-1', by)
  t.match(registry.get(id), { policyName: 'p', roles: ['admin', 'reviewer'], externalSubject: 'subject-1' })
  t.equal(registry.bySubject('subject-1')?.id, id)
  await registry.setExternalSubject(id, null, by)
  t.equal(registry.bySubject('subject-1'), undefined)
  const { items } = await store.audit.list({ page: 1, pageSize: 10 }, { subject: id })
  t.strictSame(
    items.map(entry => entry.action),
    ['agent.subject', 'agent.subject', 'agent.roles', 'agent.policy', 'agent.register'],
  )
})

t.test('an external subject is bound to one agent only, also when two ask at the same time', async t => {
  const { registry, agent } = await openBench()
  const first = await agent({ externalSubject: 's' })
  const second = await agent()
  t.match(await registry.setExternalSubject(second.id, 's', by), { refusal: 'already_exists', status: 409 })
  t.match(await registry.setExternalSubject(first.id, 's', by), { externalSubject: 's' }, 'its own stays its own')
  const both = await Promise.all([
    registry.setExternalSubject(first.id, 'new', by),
    registry.setExternalSubject(second.id, 'new', by),
  ])
  t.equal(both.filter(isRefusal).length, 1)
  await registry.remove(first.id, by)
  t.match(await registry.setExternalSubject(second.id, 's', by), { externalSubject: 's' }, 'free again after removal')
})

t.test('an id is registered once', async t => {
  const { registry, agent } = await openBench()
  const { id } = await agent()
  const again = { id: id.toUpperCase(), name: 'b', ownerId: 'o', clientSecret: secret }
  t.match(await registry.register(again, by), { refusal: 'already_exists' })
  const twins = { id: nobody, name: 'twin', ownerId: 'o', clientSecret: secret }
  const both = await Promise.all([registry.register(twins, by), registry.register(twins, by)])
  t.equal(both.filter(isRefusal).length, 1)
})

t.test('a removed agent is gone from the snapshot and from the store', async t => {
  const { registry, agent, reopen } = await openBench()
  const { id } = await agent()
  t.strictSame(await registry.remove(id.toUpperCase(), by), { removed: id })
  t.equal(registry.get(id), undefined)
  t.equal((await reopen()).get(id), undefined)
  t.match(await registry.remove(id, by), { refusal: 'not_found' })
  t.match(await registry.setPolicy(id, 'p', by), { refusal: 'not_found' })
})

t.test('an active agent of a role is looked for by status as well', async t => {
  const { registry, agent } = await openBench()
  t.equal(registry.hasActive('auditor'), false)
  const { id } = await agent({ roles: ['auditor'] })
  t.equal(registry.hasActive('auditor'), true)
  await registry.transition(id, 'revoke', by)
  t.equal(registry.hasActive('auditor'), false)
})

t.test('every change is published, with the agent as it is then', async t => {
  const told: [string, AgentRecord | undefined][] = []
  const { registry, agent } = await openBench()
  registry.subscribe((id, now) => void told.push([id, now]))
  const made = await agent()
  const changed = await registry.setPolicy(made.id, 'p', by)
  await registry.remove(made.id, by)
  t.strictSame(told, [
    [made.id, made],
    [made.id, changed],
    [made.id, undefined],
  ])
})

t.test('when the store fails nothing changes', async t => {
  const store = await openOwn(t)
  const { registry, agent } = await openBench({ store })
  const made = await agent()
  await store.close()
  await t.rejects(registry.setPolicy(made.id, 'p', by), StoreError)
  await t.rejects(registry.remove(made.id, by), StoreError)
  await t.rejects(agent({ externalSubject: 's' }), StoreError)
  t.strictSame(everything(registry), [made])
  t.equal(registry.bySubject('s'), undefined)
})

t.test('a late answer of the store does not put an older state over a newer one', async t => {
  const store = await openOwn(t)
  const { registry, agent } = await openBench({ store: withLateAnswers(store) })
  const { id } = await agent()
  await Promise.all(['first', 'second', 'third'].map(name => registry.setPolicy(id, name, by)))
  t.equal(registry.get(id)?.policyName, 'third')
})

t.test('after any changes at the same time the snapshot is what the store holds', async t => {
  const { registry, agent, reopen } = await openBench()
  const ids = (await Promise.all(['a', 'b', 'c'].map(name => agent({ name })))).map(made => made.id)
  const changes: readonly ((id: string) => Promise<unknown>)[] = [
    id => registry.setPolicy(id, 'p', by),
    id => registry.setPolicy(id, null, by),
    id => registry.setRoles(id, ['reviewer'], by),
    id => registry.setExternalSubject(id, 'shared', by),
    id => registry.setExternalSubject(id, null, by),
    id => registry.transition(id, 'deactivate', by),
    id => registry.transition(id, 'activate', by),
    id => registry.transition(id, 'quarantine', by),
    id => registry.transition(id, 'liftQuarantine', by),
    async id => registry.recordTrust(id, 'humanDenial', null),
  ]
  const step = fc.tuple(fc.nat(ids.length - 1), fc.nat(changes.length - 1))
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 30 }), async steps => {
      await Promise.all(steps.map(([agentIndex, change]) => changes[change]!(ids[agentIndex]!)))
      await registry.flush()
      t.strictSame(everything(registry), everything(await reopen()))
    }),
    { numRuns: 20 },
  )
})

t.test('a change that another part makes in the store shows as well', async t => {
  const { store, registry, agent } = await openBench()
  const [changed, removed, same] = [await agent(), await agent(), await agent()]
  const entry = { at: 1, ...by, action: 'a', subject: 's', details: {} }
  await store.agents.update(changed.id, { status: 'Revoked' }, entry)
  await store.agents.remove(removed.id, entry)
  t.match(registry.get(changed.id), { status: 'Revoked' })
  t.equal(registry.get(removed.id), undefined)
  t.strictSame(registry.get(same.id), same)
})
