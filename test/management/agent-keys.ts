/** POST and GET /agents/{agentId}/keys, DELETE /keys/{keyId}. */

import t from 'tap'
import { call } from '../fixtures/call.ts'
import { createClock } from '../fixtures/clock.ts'
import { eventually, startGateway } from '../fixtures/gateway.ts'
import { startOrigin } from '../fixtures/origin.ts'

const clock = createClock()
const origin = await startOrigin(t)
const gateway = await startGateway(t, { clock })
const { manage } = gateway

interface Key {
  readonly id: string
  readonly key: string
  readonly expiresAt: string | null
  readonly lastUsedAt: string | null
}

async function createKey(agentId: string, more: object = {}): Promise<Key> {
  const answer = await manage('POST', `/agents/${agentId}/keys`, { name: 'ci', ...more })
  if (answer.status !== 201) throw new Error(answer.text)
  return JSON.parse(answer.text)
}
const list = async (agentId: string) => JSON.parse((await manage('GET', `/agents/${agentId}/keys`)).text) as Key[]
const statusOf = async (key: string) => (await gateway.proxy(key, `${origin.url}/`)).status

t.test('a key is shown once, lets its agent call, and is over when it is revoked', async t => {
  const agent = await gateway.agent()
  const made = await createKey(agent.id)
  t.match(made, { key: /^agw_[\w-]{43}$/, expiresAt: null, lastUsedAt: null })
  t.equal(await statusOf(made.key), 200)
  t.notMatch((await manage('GET', `/agents/${agent.id}/keys`)).text, made.key.slice(10))
  t.match(await list(agent.id), [{ id: made.id, name: 'ci' }])
  t.equal((await manage('DELETE', `/keys/${made.id}`)).status, 200)
  t.equal(await statusOf(made.key), 401)
  t.strictSame(await list(agent.id), [])
  t.equal((await manage('DELETE', `/keys/${made.id}`)).status, 404)
})

t.test('the trail names keys by their ids', async t => {
  const agent = await gateway.agent()
  const { id, key } = await createKey(agent.id, { name: 'laptop' })
  await manage('DELETE', `/keys/${id}`)
  const { text } = await manage('GET', `/audit?subject=${agent.id}`)
  const actions = JSON.parse(text).items.map((item: { action: string; details: object }) => [item.action, item.details])
  const details = { keyId: id, name: 'laptop', expiresAt: null }
  t.strictSame(actions.slice(0, 2), [
    ['agent.removeKey', details],
    ['agent.addKey', details],
  ])
  t.notMatch(text, key.slice(4, 20))
})

t.test('a key expires', async t => {
  const agent = await gateway.agent()
  const expiresAt = new Date(clock.now() + 60_000).toISOString()
  const { key } = await createKey(agent.id, { expiresAt })
  t.equal(await statusOf(key), 200)
  clock.advance(59_000)
  t.equal(await statusOf(key), 200)
  clock.advance(1_000)
  const answer = await gateway.proxy(key, `${origin.url}/`)
  t.equal(answer.status, 401)
  t.match(answer.headers.get('www-authenticate'), /has expired/)
})

t.test('terms must make sense', async t => {
  const { id } = await gateway.agent()
  const past = new Date(clock.now() - 1_000).toISOString()
  for (const terms of [
    {},
    { name: '' },
    { name: 'a', expiresAt: past },
    { name: 'a', expiresAt: 'soon' },
    { name: 1 },
  ]) {
    t.equal((await manage('POST', `/agents/${id}/keys`, terms)).status, 400)
  }
  const unknown = '/agents/00000000-0000-4000-8000-000000000000/keys'
  t.equal((await manage('POST', unknown, { name: 'a' })).status, 404)
  t.equal((await manage('GET', unknown)).status, 404)
  t.equal((await manage('DELETE', '/keys/none')).status, 404)
})

t.test('an agent has at most 20 keys', async t => {
  const { id } = await gateway.agent()
  const made = await Promise.all(Array.from({ length: 21 }, () => manage('POST', `/agents/${id}/keys`, { name: 'a' })))
  t.equal(made.filter(({ status }) => status === 201).length, 20)
  t.match(JSON.parse(made.find(({ status }) => status === 409)?.text ?? ''), { code: 'too_many_keys' })
})

t.test('an agent that is not active is refused as with a token, and its keys go with it', async t => {
  const { id } = await gateway.agent()
  const { key } = await createKey(id)
  const refusal = async () => (await gateway.proxy(key, `${origin.url}/`)).headers.get('gateway-error')
  await manage('POST', `/agents/${id}/deactivate`)
  t.equal(await refusal(), 'agent_inactive')
  await manage('POST', `/agents/${id}/activate`)
  t.equal(await refusal(), null)
  await manage('POST', `/agents/${id}/revoke`)
  t.equal(await refusal(), 'agent_revoked')
  t.equal((await manage('POST', `/agents/${id}/keys`, { name: 'a' })).status, 409)
  await manage('DELETE', `/agents/${id}`)
  t.equal(await refusal(), 'unauthenticated')
})

t.test('a key carries no role, and reads what its agent had held', async t => {
  const admin = await gateway.agent({ roles: ['admin'] })
  const { key } = await createKey(admin.id)
  const refused = await manage('GET', '/agents', undefined, key)
  t.equal(refused.status, 403)
  t.match(refused.text, /needs a token with one of the roles/)
  t.equal((await manage('POST', `/agents/${admin.id}/keys`, { name: 'more' }, key)).status, 403)
  await gateway.policy({ name: 'held', default: 'Hitl' })
  const agent = await gateway.agent({ policyName: 'held' })
  const own = await createKey(agent.id)
  const held = await gateway.proxy(own.key, `${origin.url}/`)
  t.equal(held.status, 202)
  t.equal((await manage('GET', held.headers.get('location') ?? '', undefined, own.key)).status, 200)
  t.equal((await manage('GET', held.headers.get('location') ?? '', undefined, key)).status, 404)
  const other = await createKey(agent.id)
  const headers = { Authorization: `Bearer ${other.key}`, Prefer: 'wait=50' }
  const waiting = call({ port: gateway.port, path: held.headers.get('location'), headers })
  // It is the first use of this key: once it is counted, the key was right, and the call waits.
  await eventually(
    () => list(agent.id),
    keys => keys.some(({ id, lastUsedAt }) => id === other.id && lastUsedAt !== null),
  )
  await manage('DELETE', `/keys/${other.id}`)
  t.equal((await waiting).status, 401)
  t.equal((await manage('GET', held.headers.get('location') ?? '', undefined, other.key)).status, 401)
})

t.test('the last use is shown, and is there after a restart', async t => {
  const first = await startGateway(t)
  const agent = await first.agent()
  const made = JSON.parse((await first.manage('POST', `/agents/${agent.id}/keys`, { name: 'ci' })).text) as Key
  t.equal((await first.proxy(made.key, origin.url)).status, 200)
  const shown = async () => JSON.parse((await first.manage('GET', `/agents/${agent.id}/keys`)).text) as Key[]
  const used = await eventually(shown, ([key]) => key?.lastUsedAt !== null)
  t.type(used[0]?.lastUsedAt, 'string')
  await first.close()
  const again = await startGateway(t, { directory: first.directory })
  t.equal((await again.proxy(made.key, origin.url)).status, 200)
  const stored = JSON.parse((await again.manage('GET', `/agents/${agent.id}/keys`)).text) as Key[]
  t.type(stored[0]?.lastUsedAt, 'string')
})

t.test('only admins make and revoke keys; auditors list them', async t => {
  const agent = await gateway.agent()
  const auditor = await gateway.agent({ roles: ['auditor'] })
  const { id } = await createKey(agent.id)
  t.equal((await manage('GET', `/agents/${agent.id}/keys`, undefined, auditor.token)).status, 200)
  t.equal((await manage('GET', `/agents/${agent.id}/keys`, undefined, agent.token)).status, 403)
  t.equal((await manage('POST', `/agents/${agent.id}/keys`, { name: 'a' }, agent.token)).status, 403)
  t.equal((await manage('DELETE', `/keys/${id}`, undefined, auditor.token)).status, 403)
})
