/** Threats T16 and T44 of SECURITY.md: no ambient authority, and a link that is worth nothing a moment later. */
import { decodeJwt } from 'jose'
import t from 'tap'
import { startControl } from '../fixtures/control.ts'
import { secret } from '../fixtures/registry.ts'

const minute = 60_000
const by = { actor: 'gateway', requestId: null }

t.test('a code signs in once, as the agent that it was made for', async t => {
  const { call, agent, admin, store } = await startControl(t)
  const ada = await agent({ name: 'ada', ownerId: 'people', roles: ['reviewer'] })
  const made = await call('POST', '/console/codes', { token: admin.token, body: { agent: 'ada' } })
  t.match(made, { status: 201, json: { agent: { id: ada.id, name: 'ada' }, expiresAt: '2026-01-05T10:01:00.000Z' } })
  t.equal(Buffer.from(made.json.code, 'base64url').length, 48)
  const { items } = await store.audit.list({ page: 1, pageSize: 1 })
  t.match(items, [{ actor: admin.agent.id, action: 'console.code', subject: ada.id }])
  t.notMatch(JSON.stringify(items), made.json.code)
  const open = () => call('POST', '/console/sessions', { body: { code: made.json.code } })
  const [one, other] = await Promise.all([open(), open()])
  t.strictSame([one.status, other.status].sort(), [200, 401])
  const session = one.status === 200 ? one : other
  t.match(session.json, {
    agent: { id: ada.id, name: 'ada', ownerId: 'people', roles: ['reviewer'] },
    expiresAt: '2026-01-05T10:15:00.000Z',
    endsAt: '2026-01-05T22:00:00.000Z',
    fourEyes: 'self',
  })
  t.equal(session.headers.get('set-cookie'), null)
  t.equal((await call('GET', '/hitl', { token: session.json.token })).status, 200)
  t.equal((await open()).status, 401)
})

t.test('an admin that is revoked while the code is recorded gets none', async t => {
  const { call, person, registry, store } = await startControl(t)
  const { agent, token } = await person('admin')
  const { keep } = store.codes
  Object.assign(store.codes, {
    async keep(...code: Parameters<typeof keep>) {
      await keep(...code)
      await registry.transition(agent.id, 'revoke', by)
    },
  })
  const made = await call('POST', '/console/codes', { token })
  t.match(made, { status: 403, json: { code: 'agent_revoked' } })
})

t.test('a code is over after a minute', async t => {
  const { call, admin, clock } = await startControl(t)
  const code = async () => (await call('POST', '/console/codes', { token: admin.token })).json.code
  const [early, late] = [await code(), await code()]
  clock.advance(minute - 1)
  t.equal((await call('POST', '/console/sessions', { body: { code: early } })).status, 200)
  clock.advance(1)
  t.equal((await call('POST', '/console/sessions', { body: { code: late } })).status, 401)
})

t.test('a code that no gateway made does not reach the store', async t => {
  const { call, admin, store } = await startControl(t)
  const { json } = await call('POST', '/console/codes', { token: admin.token })
  let asked = 0
  Object.assign(store.codes, { take: async () => void asked++ })
  const bytes = Buffer.from(json.code, 'base64url')
  bytes[0]! ^= 1
  for (const code of [bytes.toString('base64url'), json.code.slice(1), 'short', '!']) {
    t.equal((await call('POST', '/console/sessions', { body: { code } })).status, 401)
  }
  t.equal(asked, 0)
})

t.test('no more than five codes of a person are kept: the oldest gives way', async t => {
  const { call, admin, clock } = await startControl(t)
  const codes: string[] = []
  for (let count = 0; count < 6; count++) {
    clock.advance(1)
    codes.push((await call('POST', '/console/codes', { token: admin.token })).json.code)
  }
  t.equal((await call('POST', '/console/sessions', { body: { code: codes[0] } })).status, 401)
  t.equal((await call('POST', '/console/sessions', { body: { code: codes[1] } })).status, 200)
})

t.test('a code is for an active agent that uses the console, and known by one name', async t => {
  const { call, agent, admin, registry } = await startControl(t)
  const make = async (name: string) => call('POST', '/console/codes', { token: admin.token, body: { agent: name } })
  const [one] = [await agent({ name: 'twin', roles: ['reviewer'] }), await agent({ name: 'twin', roles: ['auditor'] })]
  await agent({ name: 'bot' })
  t.match(await make('nobody'), { status: 404 })
  t.match(await make('bot'), { status: 409, json: { code: 'wrong_state', detail: /role/ } })
  t.match(await make('twin'), { status: 409, json: { detail: /id of one/ } })
  const { json } = await make(one.id.toUpperCase())
  await registry.transition(one.id, 'revoke', by)
  t.equal((await call('POST', '/console/sessions', { body: { code: json.code } })).status, 401, 'revoked since')
  t.match(await make(one.id), { status: 409 })
  t.match(await make(''), { status: 400, json: { errors: [{ field: 'agent' }] } })
  t.match(await call('POST', '/console/sessions', { body: {} }), { status: 400, json: { errors: [{ field: 'code' }] } })
})

t.test('a session is renewed for twelve hours, token by token', async t => {
  const { call, admin, clock } = await startControl(t)
  const { json } = await call('POST', '/console/codes', { token: admin.token })
  let { token } = (await call('POST', '/console/sessions', { body: { code: json.code } })).json
  for (let renewals = 0; renewals < 71; renewals++) {
    clock.advance(10 * minute)
    const renewed = await call('POST', '/tokens/renew', { token })
    t.match(renewed, { status: 200, json: { endsAt: '2026-01-05T22:00:00.000Z', agent: { id: admin.agent.id } } })
    token = renewed.json.token
  }
  t.equal(decodeJwt(token).exp! * 1_000, Date.UTC(2026, 0, 5, 22), 'the last token ends with the session')
  clock.advance(10 * minute)
  t.equal((await call('POST', '/tokens/renew', { token })).status, 401)
})

t.test('a session that is not renewed in time is over', async t => {
  const { call, admin, clock } = await startControl(t)
  const { json } = await call('POST', '/console/codes', { token: admin.token })
  const { token } = (await call('POST', '/console/sessions', { body: { code: json.code } })).json
  clock.advance(15 * minute)
  t.equal((await call('POST', '/tokens/renew', { token })).status, 401)
})

t.test('a token for a secret is renewed when it was asked for the console', async t => {
  const { call, agent, admin, tokenOf } = await startControl(t)
  const sign = async (agentId: string, more: object) =>
    (await call('POST', '/tokens', { body: { agentId, clientSecret: secret, ...more } })).json.token
  const { id } = admin.agent
  t.match(await call('POST', '/tokens/renew', { token: await sign(id, { console: true }) }), { status: 200 })
  t.match(await call('POST', '/tokens/renew', { token: await sign(id, {}) }), {
    status: 409,
    json: { code: 'wrong_state' },
  })
  const bot = await agent({ name: 'bot' })
  t.equal(decodeJwt(await sign(bot.id, { console: true }))['session_until'], undefined, 'it has nothing to show to it')
  t.match(await call('POST', '/tokens/renew', { token: await tokenOf(bot) }), { status: 403 })
})

t.test('revocation and the loss of its roles end a session at once', async t => {
  const { call, agent, registry } = await startControl(t)
  const changes = [
    (id: string) => registry.transition(id, 'revoke', by),
    (id: string) => registry.transition(id, 'quarantine', by),
    (id: string) => registry.setRoles(id, ['agent'], by),
    (id: string) => registry.remove(id, by),
  ]
  for (const change of changes) {
    const { id } = await agent({ name: 'ada', roles: ['reviewer'] })
    const body = { agentId: id, clientSecret: secret, console: true }
    const { token } = (await call('POST', '/tokens', { body })).json
    t.equal((await call('POST', '/tokens/renew', { token })).status, 200)
    await change(id)
    t.ok([401, 403].includes((await call('POST', '/tokens/renew', { token })).status))
  }
})
