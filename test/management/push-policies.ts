import t from 'tap'
import { startControl } from '../fixtures/control.ts'

const by = { actor: 'x', requestId: null }
const { call, admin, book, store, agent, loadFile } = await startControl(t)

const push = (policies: readonly object[], prune = false) =>
  call('PUT', '/policies', { token: admin.token, body: { policies, prune } })
const stored = async () => (await store.policies.all()).map(({ name }) => name)
const versions = () => book.list().map(({ document, compiled }) => `${document.name} ${compiled.version}`)

t.test('a push creates, replaces, leaves alone and prunes, and is on record', async t => {
  await book.create({ name: 'same' }, by)
  await book.create({ name: 'changed' }, by)
  await book.create({ name: 'old' }, by)
  const policies = [{ name: 'same' }, { name: 'changed', default: 'Allow' }, { name: 'new' }]
  const first = await push(policies)
  t.strictSame(first.json, { created: ['new'], replaced: ['changed'], removed: [], unchanged: ['same'] })
  t.strictSame(await stored(), ['changed', 'new', 'old', 'same'])
  const { items } = await store.audit.list({ page: 1, pageSize: 2 })
  t.strictSame(items.map(({ action, actor }) => [action, actor]).sort(), [
    ['policy.create', admin.agent.id],
    ['policy.replace', admin.agent.id],
  ])
  const second = await push(policies, true)
  t.strictSame(second.json, { created: [], replaced: [], removed: ['old'], unchanged: ['same', 'changed', 'new'] })
  t.equal(book.get('old'), undefined)
  const before = (await store.audit.list({ page: 1, pageSize: 1 })).totalCount
  await push(policies, true)
  t.equal((await store.audit.list({ page: 1, pageSize: 1 })).totalCount, before, 'nothing to do is nothing to record')
})

t.test('a push with a mistake changes nothing, and names all mistakes with their places', async t => {
  const before = versions()
  const { status, json } = await push([{ name: 'x' }, { name: 'y', default: 'Maybe' }, { name: 'x' }], true)
  t.match(
    { status, json },
    {
      status: 400,
      json: { code: 'invalid_policy', errors: [{ field: 'policies[1].default' }, { field: 'policies[2].name' }] },
    },
  )
  t.strictSame(versions(), before)
})

t.test('a policy of a file cannot be pushed, and one that is named cannot be pruned', async t => {
  await loadFile('fixed')
  const before = versions()
  t.match(await push([{ name: 'fixed' }]), { status: 409, json: { code: 'read_only', detail: /^The policy fixed / } })
  await agent({ policyName: 'new' })
  t.match(await push([], true), { status: 409, json: { code: 'in_use', detail: /^The policy new / } })
  t.strictSame(versions(), before)
})
