/** POST /agents, /agents/{agentId}/keys and /policies with an Idempotency-Key. */
import t from 'tap'
import { startControl } from '../fixtures/control.ts'
import { openRaw } from '../fixtures/raw.ts'

const control = await startControl(t)
const { call, admin, registry, person, agent, url } = control
const post = (path: string, key: string, body: object, token = admin.token) =>
  call('POST', path, { token, body, headers: { 'idempotency-key': key } })
const bot = { name: 'bot', ownerId: 'team' }
const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

t.test('a repeat creates no second agent, and names the first without its secret', async t => {
  const first = await post('/agents', 'a', bot)
  t.match(first, { status: 201, json: { id: uuid, clientSecret: /./ } })
  const count = registry.values().length
  const { status, json, text } = await post('/agents', 'a', bot)
  t.match({ status, json }, { status: 409, json: { code: 'already_exists', created: first.json.id } })
  t.notMatch(text, first.json.clientSecret)
  t.equal(registry.values().length, count)
  t.match(await post('/agents', 'b', bot), { status: 201 })
})

t.test('of two calls at once one creates, and the other names it', async t => {
  const both = await Promise.all([post('/agents', 'twice', bot), post('/agents', 'twice', bot)])
  t.strictSame(both.map(({ status }) => status).sort(), [201, 409])
  t.equal(both.find(({ status }) => status === 409)?.json.created, both.find(({ status }) => status === 201)?.json.id)
})

t.test('the key of an agent that was removed creates none: its old tokens would be valid again', async t => {
  const { json } = await post('/agents', 'gone', bot)
  t.match(await call('DELETE', `/agents/${json.id}`, { token: admin.token }), { status: 200 })
  t.match(await post('/agents', 'gone', bot), { status: 409, json: { created: json.id } })
  t.equal(registry.get(json.id), undefined)
})

t.test('keys of another admin are others', async t => {
  const other = await person('admin')
  const first = await post('/agents', 'mine', bot)
  const second = await post('/agents', 'mine', bot, other.token)
  t.match([first.status, second.status], [201, 201])
  t.not(first.json.id, second.json.id)
})

t.test('a call that was refused leaves its key free', async t => {
  t.match(await post('/agents', 'free', { ...bot, policyName: 'none' }), { status: 400 })
  t.match(await post('/agents', 'free', bot), { status: 201 })
})

t.test('a repeat creates no second key of an agent, also when the first one was revoked', async t => {
  const [{ id }, other] = [await agent(), await agent()]
  const first = await post(`/agents/${id}/keys`, 'k', { name: 'ci' })
  t.match(first, { status: 201, json: { id: uuid, key: /^agw_/ } })
  const repeat = { status: 409, json: { code: 'already_exists', created: first.json.id, key: undefined } }
  t.match(await post(`/agents/${id.toUpperCase()}/keys`, 'k', { name: 'ci' }), repeat)
  t.equal(registry.get(id)?.keys.length, 1)
  t.match(await post(`/agents/${other.id}/keys`, 'k', { name: 'ci' }), { status: 201 })
  await call('DELETE', `/keys/${first.json.id}`, { token: admin.token })
  t.match(await post(`/agents/${id}/keys`, 'k', { name: 'ci' }), repeat)
  t.equal(registry.get(id)?.keys.length, 0)
})

t.test('of two calls for a key at once one creates', async t => {
  const { id } = await agent()
  const both = await Promise.all([1, 2].map(() => post(`/agents/${id}/keys`, 'twice', { name: 'ci' })))
  t.strictSame(both.map(({ status }) => status).sort(), [201, 409])
  t.equal(registry.get(id)?.keys.length, 1)
})

t.test('a policy that says what is sent is answered as the first time; without the key it is 409', async t => {
  const policy = { name: 'p', default: 'Deny' }
  const first = await post('/policies', 'p', policy)
  t.equal(first.status, 201)
  t.match(await post('/policies', 'p', policy), { status: 201, json: first.json })
  t.match(await call('POST', '/policies', { token: admin.token, body: policy }), { status: 409 })
  t.match(await post('/policies', 'p', { ...policy, default: 'Hitl' }), {
    status: 409,
    json: { code: 'already_exists' },
  })
  const { json } = await call('GET', '/audit?action=policy.create&subject=p', { token: admin.token })
  t.equal(json.totalCount, 1)
})

t.test('a key has 1 to 255 characters', async t => {
  const errors = [{ field: 'Idempotency-Key', message: 'must have 1 to 255 characters' }]
  for (const [path, body] of [
    ['/agents', bot],
    ['/policies', { name: 'q', default: 'Deny' }],
  ] as const) {
    for (const key of ['', 'x'.repeat(256)]) t.match(await post(path, key, body), { status: 400, json: { errors } })
  }
})

t.test('two keys in one call are refused', async t => {
  const client = await openRaw(t, Number(new URL(url).port))
  const body = JSON.stringify(bot)
  const fields = ['Idempotency-Key: one', 'Idempotency-Key: two', 'Content-Type: application/json', 'Host: 127.0.0.1']
  const head = [
    `Authorization: Bearer ${admin.token}`,
    ...fields,
    `Content-Length: ${body.length}`,
    'Connection: close',
  ]
  client.write(`POST /agents HTTP/1.1\r\n${head.join('\r\n')}\r\n\r\n${body}`)
  t.match(await client.closed(), /^HTTP\/1\.1 400 [\s\S]*Gateway-Error: invalid_request/)
})
