import { startControl } from '../fixtures/control.ts'
import { loadInto } from '../fixtures/load-policies.ts'
import t from '../fixtures/tap.ts'

const by = { actor: 'x', requestId: null }

t.test('a deleted policy is gone', async t => {
  const { call, admin, book, store } = await startControl(t)
  await book.create({ name: 'p' }, by)
  const { status, text } = await call('DELETE', '/policies/p', { token: admin.token })
  t.same({ status, text }, { status: 200, text: '' })
  t.equal(book.get('p'), undefined)
  t.strictSame(await store.policies.all(), [])
  t.match(await call('DELETE', '/policies/p', { token: admin.token }), { status: 404 })
})

t.test('a policy that something names stays', async t => {
  const { call, admin, book, agent } = await startControl(t)
  await book.create({ name: 'p' }, by)
  const { id } = await agent({ policyName: 'p' })
  const { status, json } = await call('DELETE', '/policies/p', { token: admin.token })
  t.match({ status, json }, { status: 409, json: { code: 'in_use', detail: new RegExp(`agent ${id}`) } })
  t.ok(book.get('p'))
})

t.test('a policy of a file is read-only', async t => {
  const { call, admin, book } = await startControl(t)
  await loadInto(book, [{ source: 'file', document: { name: 'p' }, createdAt: 0, where: () => 'p.yaml' }])
  t.match(await call('DELETE', '/policies/p', { token: admin.token }), { status: 409, json: { code: 'read_only' } })
})
