import { startControl } from '../fixtures/control.ts'
import { secret } from '../fixtures/registry.ts'
import t from '../fixtures/tap.ts'

const control = await startControl(t)

t.test('the right secret gets a token that the gateway accepts, under both names', async t => {
  const { call, admin } = control
  const body = { agentId: admin.agent.id, clientSecret: secret }
  const { status, json, headers } = await call('POST', '/tokens', { body })
  t.equal(status, 200)
  t.match(json, { tokenType: 'Bearer', expiresAt: '2026-01-05T10:15:00.000Z' })
  t.equal(json.accessToken, json.token)
  t.equal(headers.get('cache-control'), 'no-store')
  t.match(await call('GET', '/agents', { token: json.token }), { status: 200 })
})

t.test('an agent id in capitals is the same agent', async t => {
  const { call, admin } = control
  const body = { agentId: admin.agent.id.toUpperCase(), clientSecret: secret }
  t.match(await call('POST', '/tokens', { body }), { status: 200 })
})

t.test('every credential that is not valid gets the same 401', async t => {
  const { call, agent, registry } = control
  const inactive = await agent()
  await registry.transition(inactive.id, 'deactivate', { actor: 'gateway', requestId: null })
  const known = await agent()
  const bodies = [
    {},
    { agentId: known.id },
    { agentId: known.id, clientSecret: 'wrong' },
    { agentId: known.id, clientSecret: '' },
    { agentId: known.id, clientSecret: `${secret}\u0000` },
    { agentId: known.id, externalToken: 'a.b.c' },
    { agentId: inactive.id, clientSecret: secret },
    { agentId: '00000000-0000-4000-8000-000000000000', clientSecret: secret },
    { agentId: `{${known.id}}`, clientSecret: secret },
  ]
  for (const body of bodies) {
    const { status, text, headers } = await call('POST', '/tokens', { body })
    t.same({ status, text }, { status: 401, text: 'Missing or invalid authentication' }, JSON.stringify(body))
    t.equal(headers.get('www-authenticate'), 'Bearer')
  }
})

t.test('too many failures are slowed down with 429 and Retry-After', async t => {
  const { call, admin } = control
  const body = { agentId: admin.agent.id, clientSecret: 'wrong' }
  for (let count = 0; count < 5; count++) await call('POST', '/tokens', { body })
  const refused = await call('POST', '/tokens', { body })
  t.match(refused, { status: 429, json: { code: 'too_many_logins' } })
  t.match(refused.headers.get('retry-after'), /^\d+$/)
})

t.test('a credential of the wrong type is named', async t => {
  const { call } = control
  const { status, json } = await call('POST', '/tokens', { body: { agentId: 1, clientSecret: null, extra: true } })
  t.equal(status, 400)
  t.match(json, { code: 'invalid_body', requestId: /^request-/ })
  t.same(
    json.errors.map((error: { field: string }) => error.field),
    ['extra', 'agentId', 'clientSecret'],
  )
})
