import t from 'tap'
import type { StoredEntry } from '../../src/policies/entry.ts'
import { startControl } from '../fixtures/control.ts'

const control = await startControl(t)

const by = { actor: 'x', requestId: null }
const audited = (subject: string) => ({ ...by, at: 0, action: 'policy.replace', subject, details: {} })

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

t.test('of two authors who began from one version the second changes nothing', async t => {
  const { call, admin, book } = control
  await book.create({ name: 'seen' }, by)
  const { headers } = await call('GET', '/policies/seen', { token: admin.token })
  const put = (tag: string, description: string) =>
    call('PUT', '/policies/seen', { token: admin.token, body: { description }, headers: { 'If-Match': tag } })
  const tag = headers.get('etag')!
  t.equal(tag, `"${book.entry('seen')?.compiled.version}"`)
  const first = await put(tag, 'first')
  t.equal(first.status, 200)
  for (const wrong of [tag, `W/${first.headers.get('etag')}`, '""'])
    t.match(await put(wrong, 'second'), { status: 412, json: { code: 'not_as_seen' } }, wrong)
  t.equal(book.entry('seen')?.document.description, 'first')
  t.equal((await put(`"other", ${first.headers.get('etag')}`, 'third')).status, 200)
  t.equal((await put('*', 'fourth')).status, 200)
})

t.test('another policy in its place is another version, although its time is the same', async t => {
  const { book, store } = control
  await book.create({ name: 'again', description: 'first' }, by)
  const { stored, compiled } = book.entry('again') as StoredEntry
  await book.remove('again', by)
  await book.create({ name: 'again', description: 'second' }, by)
  const [record] = (await store.policies.all()).filter(({ name }) => name === 'again')
  t.match(await book.remove('again', { ...by, versions: [compiled.version] }), { refusal: 'not_as_seen' })
  t.equal(await store.policies.update(record!, audited('again'), stored), 'stale', 'nor where another gateway has it')
  t.equal(await store.policies.remove('again', audited('again'), stored), 'stale')
  t.equal(await store.policies.remove('again', audited('again'), record!.document), 'removed')
})

t.test('what is in force is what the store has', async t => {
  const { book, clock, store } = control
  await book.create({ name: 'older' }, by)
  clock.advance(60_000)
  await book.push({ policies: [{ name: 'older', description: 'new' }], prune: false }, by)
  const { createdAt, document } = (await store.policies.all()).find(({ name }) => name === 'older')!
  t.match(book.entry('older'), { createdAt, stored: document })
  t.equal(createdAt, clock.now() - 60_000)
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
