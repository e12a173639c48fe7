import t from 'tap'
import { startControl } from '../fixtures/control.ts'

const { call, admin, book, person } = await startControl(t)
const { token } = admin
const condition = { field: 'input.method', operator: 'eq', value: 'DELETE' }
const policy = { name: 'draft', default: 'Deny', rules: [{ name: 'd', effect: 'Hitl', conditions: [condition] }] }
const check = (body: object, by = token) => call('POST', '/policies/check', { token: by, body })

t.test('a policy that is not in force is checked, and decides requests', async t => {
  const request = { method: 'DELETE', url: 'https://api.example/x' }
  const answer = await check({ policy, requests: [{ request }, { request: { ...request, method: 'GET' } }] })
  t.match(answer, {
    status: 200,
    json: {
      version: /^sha256:/,
      explanations: [{ result: { decision: 'Hitl', rule: 'd' } }, { result: { decision: 'Deny', rule: null } }],
    },
  })
  t.equal(book.entry('draft'), undefined, 'nothing is stored')
  const open = await check({ policy: { name: 'draft', default: 'Allow' } })
  t.match(open.json, { warnings: [{ message: /the default is Allow/ }], explanations: [] })
})

t.test('all mistakes have their places', async t => {
  const bad = { ...policy, default: 'No', rules: [{ ...policy.rules[0], conditions: [{ ...condition, field: 'x' }] }] }
  const { status, json } = await check({ policy: bad })
  t.equal(status, 400)
  t.equal(json.code, 'invalid_policy')
  t.match(
    json.errors.map(({ field }: { field: string }) => field),
    ['default', 'rules[0].conditions[0]'],
  )
  t.match(await check({ policy, requests: [{ request: { url: 'nothing' } }] }), {
    status: 400,
    json: { code: 'invalid_target' },
  })
  t.match(await check({ policy: 'x' }), { status: 400 })
  t.match(await check({ policy }, (await person('reviewer')).token), { status: 403 })
})

t.test('a change has a comment in the trail', async t => {
  t.match(await call('POST', '/policies?comment=first%20try', { token, body: policy }), { status: 201 })
  t.match(await call('PUT', '/policies/draft?comment=stricter', { token, body: { ...policy, rules: [] } }), {
    status: 200,
  })
  t.match((await call('GET', '/audit?subject=draft', { token })).json.items, [
    { action: 'policy.replace', actor: admin.agent?.id ?? String, details: { comment: 'stricter' } },
    { action: 'policy.create', details: { comment: 'first try' } },
  ])
})
