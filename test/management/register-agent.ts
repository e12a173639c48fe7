/** Threats T28, T38 of SECURITY.md. */

import t from 'tap'
import { startControl } from '../fixtures/control.ts'

const control = await startControl(t)
const count = () => control.registry.values().length

const body = { name: 'bot', ownerId: 'team', clientSecret: 'correct horse battery staple' }

t.test('a registered agent gets an id, and its secret is returned this once', async t => {
  const { call, admin, registry } = control
  const { status, json, headers } = await call('POST', '/agents', { token: admin.token, body })
  t.equal(status, 201)
  t.strictSame(Object.keys(json), ['id', 'name', 'clientSecret'])
  t.match(json, { name: 'bot', clientSecret: body.clientSecret })
  t.equal(headers.get('location'), `/agents/${json.id}`)
  t.match(registry.get(json.id), { status: 'Active', roles: ['agent'], policyName: null })
  t.match(await call('POST', '/tokens', { body: { agentId: json.id, clientSecret: body.clientSecret } }), {
    status: 200,
  })
})

t.test('roles, policy and external subject may be given', async t => {
  const { call, admin, registry, book } = control
  await book.create({ name: 'p' }, { actor: 'x', requestId: null })
  const more = { ...body, roles: ['agent', 'reviewer'], policyName: 'p', externalSubject: 'user-1' }
  const { json } = await call('POST', '/agents', { token: admin.token, body: more })
  t.match(registry.get(json.id), { roles: ['agent', 'reviewer'], policyName: 'p', externalSubject: 'user-1' })
})

t.test('a secret that is left out is made and shown once, unless the agent has another identity', async t => {
  const { call, admin } = control
  const without = { name: 'bot', ownerId: 'team' }
  const { status, json } = await call('POST', '/agents', { token: admin.token, body: { ...without, roles: ['admin'] } })
  t.equal(status, 201)
  t.match(json.clientSecret, /^[\w-]{43}$/)
  const login = { agentId: json.id, clientSecret: json.clientSecret }
  t.match(await call('POST', '/tokens', { body: login }), { status: 200 })
  const bound = await call('POST', '/agents', { token: admin.token, body: { ...without, externalSubject: 'user-9' } })
  t.strictSame([bound.status, Object.keys(bound.json)], [201, ['id', 'name']])
})

t.test('a weak secret is good enough for an agent, with a warning, until it may decide', async t => {
  const { call, admin } = control
  const weak = await call('POST', '/agents', { token: admin.token, body: { ...body, clientSecret: 'a' } })
  t.equal(weak.status, 201)
  t.match(weak.json.warnings, [/^clientSecret: is short or easy to guess/])
  const path = `/agents/${weak.json.id}`
  const assign = () => call('PUT', `${path}/roles`, { token: admin.token, body: { roles: ['reviewer'] } })
  t.match(await assign(), { status: 400, json: { errors: [{ field: 'roles', message: /rotate-secret first$/ }] } })
  t.match(await call('POST', `${path}/rotate-secret`, { token: admin.token }), { status: 200 })
  t.match(await assign(), { status: 200 })
})

t.test('what the gateway gives by itself cannot be asked for, and nothing is stored', async t => {
  const { call, admin } = control
  const before = count()
  for (const field of ['id', 'status', 'trustScore', 'role']) {
    const text = JSON.stringify(body).replace('{', `{"${field}":{"polluted":true},`)
    const { status, json } = await call('POST', '/agents', { token: admin.token, body: text })
    t.match(
      { status, json },
      { status: 400, json: { errors: [{ field, message: 'must not be given: unknown field' }] } },
      field,
    )
  }
  const text = JSON.stringify(body).replace('{', '{"__proto__":{"polluted":true},')
  t.match(await call('POST', '/agents', { token: admin.token, body: text }), {
    status: 400,
    json: { detail: 'The body has the name "__proto__".' },
  })
  t.equal(count(), before)
  t.equal(({} as { polluted?: unknown }).polluted, undefined)
})

t.test('each mistake is named, and nothing is stored', async t => {
  const { call, admin } = control
  const before = count()
  const cases: [object, string][] = [
    [{ name: undefined }, 'name'],
    [{ ownerId: undefined }, 'ownerId'],
    [{ name: '' }, 'name'],
    [{ name: 'x'.repeat(10_240) }, 'name'],
    [{ ownerId: 5 }, 'ownerId'],
    [{ clientSecret: '' }, 'clientSecret'],
    [{ clientSecret: 'x'.repeat(73) }, 'clientSecret'],
    [{ clientSecret: 'ä'.repeat(37) }, 'clientSecret'],
    [{ clientSecret: 'a', roles: ['reviewer'] }, 'clientSecret'],
    [{ clientSecret: 'password12345678', roles: ['agent', 'admin'] }, 'clientSecret'],
    [{ clientSecret: 'abababababababababab', roles: ['auditor'] }, 'clientSecret'],
    [{ roles: [] }, 'roles'],
    [{ roles: ['agent', 'root'] }, 'roles[1]'],
    [{ policyName: 'no-such-policy' }, 'policyName'],
  ]
  for (const [change, field] of cases) {
    const { status, json } = await call('POST', '/agents', { token: admin.token, body: { ...body, ...change } })
    t.match({ status, json }, { status: 400, json: { code: 'invalid_body', errors: [{ field }] } }, field)
  }
  t.equal(count(), before)
})

t.test('an external subject belongs to one agent', async t => {
  const { call, admin } = control
  const bound = { ...body, externalSubject: 'user-2' }
  t.match(await call('POST', '/agents', { token: admin.token, body: bound }), { status: 201 })
  t.match(await call('POST', '/agents', { token: admin.token, body: bound }), {
    status: 409,
    json: { code: 'already_exists' },
  })
})

t.test('agents of the same name registered at once all get ids of their own', async t => {
  const { call, admin } = control
  const calls = Array.from({ length: 20 }, () => call('POST', '/agents', { token: admin.token, body }))
  const answers = await Promise.all(calls)
  t.ok(answers.every(({ status }) => status === 201))
  t.equal(new Set(answers.map(({ json }) => json.id)).size, 20)
})
