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

t.test('of two authors who began from one version the second changes nothing', async t => {
  const { call, admin, book, store } = control
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
  const [record] = (await store.policies.all()).filter(({ name }) => name === 'seen')
  const entry = { at: 0, actor: 'x', action: 'policy.replace', subject: 'seen', requestId: null, details: {} }
  t.equal(await store.policies.update(record!, entry, record!.updatedAt - 1), 'stale')
})

t.test('what is pushed at the same time, or by a clock that is behind, is another version, too', async t => {
  const { book, clock, store } = control
  const timeOf = async () => (await store.policies.all()).find(({ name }) => name === 'pushed')!.updatedAt
  const push = (description: string) => book.push({ policies: [{ name: 'pushed', description }], prune: false }, by)
  await push('first')
  const times = [await timeOf()]
  for (const description of ['second', 'third']) {
    await push(description)
    times.push(await timeOf())
  }
  t.strictSame(times, [clock.now(), clock.now() + 1, clock.now() + 2])
})

t.test('what is in force has the times of the store', async t => {
  const { book, clock, store } = control
  await book.create({ name: 'older' }, by)
  clock.advance(60_000)
  await book.push({ policies: [{ name: 'older', description: 'new' }], prune: false }, by)
  const { createdAt, updatedAt } = (await store.policies.all()).find(({ name }) => name === 'older')!
  t.match(book.entry('older'), { createdAt, updatedAt })
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
