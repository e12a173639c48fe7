import t from 'tap'
import { startControl } from '../fixtures/control.ts'
import { secret } from '../fixtures/registry.ts'

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

t.test('a credential of the wrong type is named', async t => {
  const { call } = control
  const { status, json } = await call('POST', '/tokens', { body: { agentId: 1, clientSecret: null, extra: true } })
  t.equal(status, 400)
  t.match(json, { code: 'invalid_body', requestId: /^request-/ })
  t.strictSame(
    json.errors.map((error: { field: string }) => error.field),
    ['extra', 'agentId', 'clientSecret'],
  )
})
