import t from 'tap'
import { startControl } from '../fixtures/control.ts'

const control = await startControl(t)

const by = { actor: 'x', requestId: null }

t.test('a policy is replaced whole; its time of creation stays', async t => {
  const { call, admin, book, clock, store } = control
  await book.create({ name: 'p', description: 'old' }, by)
  const before = await call('GET', '/policies/p', { token: admin.token })
  clock.advance(60_000)
  const body = { name: 'p', rules: [{ name: 'r', effect: 'Deny', conditions: [] }] }
  const { status, json } = await call('PUT', '/policies/p', { token: admin.token, body })
  t.equal(status, 200)
  t.match(json, { description: '', rules: body.rules, CreatedOn: before.json.CreatedOn })
  t.not(json.version, before.json.version)
  t.match(await store.policies.all(), [{ name: 'p', document: /"r"/ }])
  const audit = await store.audit.list({ page: 1, pageSize: 1 })
  t.match(audit.items, [{ action: 'policy.replace', details: { before: before.json.version, after: json.version } }])
})

t.test('the name in the body may be left out, and may not be another one', async t => {
  const { call, admin, book } = control
  await book.create({ name: 'named' }, by)
  t.match(await call('PUT', '/policies/named', { token: admin.token, body: { description: 'new' } }), { status: 200 })
  t.match(await call('PUT', '/policies/named', { token: admin.token, body: { name: 'q' } }), {
    status: 400,
    json: { code: 'invalid_policy', errors: [{ field: 'name', code: 'E_NAME' }] },
  })
  t.equal(book.entry('named')?.document.description, 'new')
})

t.test('a policy with errors changes nothing', async t => {
  const { call, admin, book } = control
  await book.create({ name: 'kept', description: 'old' }, by)
  const body = { name: 'kept', rules: [{ effect: 'Maybe' }] }
  t.match(await call('PUT', '/policies/kept', { token: admin.token, body }), {
    status: 400,
    json: { code: 'invalid_policy' },
  })
  t.equal(book.entry('kept')?.document.description, 'old')
})

t.test('a policy of a file is read-only, one that is not there is 404', async t => {
  const { call, admin, loadFile } = control
  await loadFile('of-file')
  t.match(await call('PUT', '/policies/of-file', { token: admin.token, body: { name: 'of-file' } }), {
    status: 409,
    json: { code: 'read_only' },
  })
  t.match(await call('PUT', '/policies/q', { token: admin.token, body: { name: 'q' } }), { status: 404 })
})
