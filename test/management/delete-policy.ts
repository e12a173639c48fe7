import t from 'tap'
import { startControl } from '../fixtures/control.ts'

const by = { actor: 'x', requestId: null }
const { call, admin, book, store, agent, loadFile } = await startControl(t)

t.test('a deleted policy is gone', async t => {
  await book.create({ name: 'p' }, by)
  const { status, text } = await call('DELETE', '/policies/p', { token: admin.token })
  t.strictSame({ status, text }, { status: 200, text: '' })
  t.equal(book.get('p'), undefined)
  t.strictSame(await store.policies.all(), [])
  t.match(await call('DELETE', '/policies/p', { token: admin.token }), { status: 404 })
})

t.test('a policy that somebody has changed meanwhile is deleted by nobody who has seen another version', async t => {
  await book.create({ name: 'seen' }, by)
  const { headers } = await call('GET', '/policies/seen', { token: admin.token })
  const tag = headers.get('etag')!
  await book.replace('seen', { description: 'changed' }, by)
  const remove = (match: string) =>
    call('DELETE', '/policies/seen', { token: admin.token, headers: { 'If-Match': match } })
  for (const wrong of [tag, '""', `W/"${book.entry('seen')?.compiled.version}"`])
    t.match(await remove(wrong), { status: 412, json: { code: 'not_as_seen' } }, wrong)
  t.equal(book.entry('seen')?.document.description, 'changed')
  t.equal((await remove(`"${book.entry('seen')?.compiled.version}"`)).status, 200)
  t.equal(book.get('seen'), undefined)
  const { items } = await store.audit.list({ page: 1, pageSize: 1 })
  t.match(items, [{ action: 'policy.remove', subject: 'seen', versions: undefined }])
})

t.test('a policy that something names stays', async t => {
  await book.create({ name: 'used' }, by)
  const { id } = await agent({ policyName: 'used' })
  const { status, json } = await call('DELETE', '/policies/used', { token: admin.token })
  t.match({ status, json }, { status: 409, json: { code: 'in_use', detail: new RegExp(`agent ${id}`) } })
  t.ok(book.get('used'))
})

t.test('a policy of a file is read-only', async t => {
  await loadFile('fixed')
  t.match(await call('DELETE', '/policies/fixed', { token: admin.token }), { status: 409, json: { code: 'read_only' } })
})
