import t from 'tap'
import { startControl } from '../fixtures/control.ts'

const control = await startControl(t)

const body = { name: 'p', rules: [{ name: 'r', effect: 'Allow', conditions: [] }] }

t.test('a created policy is in force at once, and after a restart', async t => {
  const { call, admin, book, store } = control
  const { status, json, headers } = await call('POST', '/policies', { token: admin.token, body })
  t.equal(status, 201)
  t.match(json, { name: 'p', rules: body.rules, source: 'api' })
  t.equal(headers.get('location'), '/policies/p')
  t.ok(book.get('p'))
  t.match(await store.policies.all(), [{ name: 'p' }])
  const audit = await store.audit.list({ page: 1, pageSize: 1 })
  t.match(audit.items, [{ action: 'policy.create', subject: 'p', actor: admin.agent.id, requestId: /^request-/ }])
})

t.test('a policy with errors is refused whole, with all of them', async t => {
  const { call, admin, book, store } = control
  const before = book.list()
  const rule = { name: 'r', effect: 'Allow', conditions: [] }
  const bad = {
    rules: [
      { ...rule, effect: 'Maybe' },
      { ...rule, name: 'q' },
      { ...rule, condtions: [] },
    ],
  }
  const { status, json } = await call('POST', '/policies', { token: admin.token, body: bad })
  t.equal(status, 400)
  t.match(json, {
    code: 'invalid_policy',
    errors: [
      { field: 'name', code: 'E_NAME' },
      { field: 'rules[0].effect', code: 'E_EFFECT' },
      { field: 'rules[2].condtions', code: 'E_UNKNOWN_KEY' },
      { field: 'rules[2].name', code: 'E_DUPLICATE' },
    ],
  })
  t.strictSame(book.list(), before)
  t.equal((await store.policies.all()).length, before.length)
})

t.test('a silenced warning is kept and shown with its reason; an unknown one is refused', async t => {
  const { call, admin } = control
  const create = (name: string, code: string) => {
    const rule = { name: 'r', effect: 'Allow', conditions: [], silence: [{ code, reason: 'a lab' }] }
    return call('POST', '/policies', { token: admin.token, body: { name, rules: [rule] } })
  }
  t.match(await create('silent', 'W_ANY_ORIGIN'), { status: 201 })
  const { json } = await call('GET', '/policies/silent', { token: admin.token })
  t.match(json, { rules: [{ silence: [{ code: 'W_ANY_ORIGIN', reason: 'a lab' }] }] })
  t.match(await create('loud', 'W_ANYTHING'), {
    status: 400,
    json: { code: 'invalid_policy', errors: [{ field: 'rules[0].silence[0].code', code: 'E_VALUE' }] },
  })
})

t.test('a name that is in use is 409, with any owner', async t => {
  const { call, admin, loadFile } = control
  await loadFile('of-file')
  const create = (name: string) => call('POST', '/policies', { token: admin.token, body: { name } })
  const taken = { status: 409, json: { code: 'already_exists' } }
  t.match(await create('of-file'), taken)
  t.match(await create('of-api'), { status: 201 })
  t.match(await create('of-api'), taken)
})

t.test('of many creations at once one wins', async t => {
  const { call, admin } = control
  const one = { ...body, name: 'contended' }
  const calls = Array.from({ length: 10 }, () => call('POST', '/policies', { token: admin.token, body: one }))
  const statuses = (await Promise.all(calls)).map(({ status }) => status).sort()
  t.strictSame(statuses, [201, ...Array(9).fill(409)])
})
