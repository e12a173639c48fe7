/** POST /hitl/{id}/grant: a grant from a request that was approved before. */
import t from 'tap'
import { startControl } from '../fixtures/control.ts'

const control = await startControl(t)
const { call, person, suspend, store, queue, agent, tokenOf, clock } = control
const bot = await person('agent')
const { agent: reviewer, token } = await person('reviewer')
const terms = { minutes: 10, maxUses: 2 }

type Grantable = Parameters<typeof suspend>[1]

/** The id of a request that was approved and answered. */
async function approved(more?: Grantable): Promise<string> {
  const id = await suspend(bot.agent, more)
  t.equal((await call('POST', `/hitl/${id}/approve`, { token })).status, 200)
  await queue.idle()
  return id
}

const give = (id: string, body: object = terms, more: { token?: string; headers?: Record<string, string> } = {}) =>
  call('POST', `/hitl/${id}/grant`, { token, body, ...more })
const trail = async (subject: string) => (await store.audit.list({ page: 1, pageSize: 9 }, { subject })).items

t.test('a grant from the history is the grant of an approval, and the trail says who gave it', async t => {
  const hitlId = await approved()
  const { status, json } = await give(hitlId, { ...terms, path: '/v1/*' })
  const grant = {
    agentId: bot.agent.id,
    rule: 'refunds',
    method: 'POST',
    path: '/v1/*',
    hitlId,
    grantedBy: reviewer.id,
  }
  t.match({ status, json }, { status: 201, json: { ...grant, ...terms, minutes: undefined, uses: 0 } })
  t.equal(Date.parse(json.expiresAt), clock.now() + 600_000)
  t.match((await call('GET', '/hitl/grants', { token })).json, [json])
  t.match(await trail(json.id), [
    { action: 'hitl.grant', actor: reviewer.id, details: { agentId: bot.agent.id, grant } },
  ])
})

t.test('only a request that was approved and answered is granted', async t => {
  const pending = await suspend(bot.agent)
  const denied = await suspend(bot.agent)
  await call('POST', `/hitl/${denied}/deny`, { token })
  for (const id of [pending, denied]) t.match(await give(id), { status: 409, json: { code: 'wrong_state' } })
  t.match(await give('nobody'), { status: 404 })
})

t.test('the limits of grants hold', async t => {
  const id = await approved()
  for (const wrong of [{ minutes: 481 }, { maxUses: 1_001 }, { maxUses: 0 }]) {
    t.match(await give(id, { ...terms, ...wrong }), { status: 400, json: { code: 'invalid_body' } })
  }
  t.match(await give(id, { ...terms, path: '/other' }), { status: 400, json: { errors: [{ field: 'path' }] } })
  t.match(await give(id, { minutes: 1 }), { status: 400 })
  const risky = await approved({ source: 'risk', risk: 0.9 })
  t.match(await give(risky), { status: 409, json: { code: 'wrong_state' } })
})

t.test('nobody grants requests of their own, and the attempt is on record', async t => {
  const self = await agent({ name: 'both', roles: ['reviewer'] })
  const id = await suspend(self)
  await call('POST', `/hitl/${id}/approve`, { token })
  await queue.idle()
  t.match(await give(id, terms, { token: await tokenOf(self) }), { status: 403, json: { code: 'own_request' } })
  t.ok((await trail(id)).some(({ action, actor }) => action === 'hitl.refused' && actor === self.id))
})

t.test('If-Match of another request gives nothing', async t => {
  const wrong = { headers: { 'If-Match': `"${'0'.repeat(64)}"` } }
  t.match(await give(await approved(), terms, wrong), { status: 412, json: { code: 'not_as_seen' } })
})

t.test('one Idempotency-Key gives one grant, also at once and after the grant has ended', async t => {
  const id = await approved()
  const once = { headers: { 'Idempotency-Key': 'k' } }
  const both = await Promise.all([give(id, terms, once), give(id, terms, once)])
  t.strictSame(both.map(({ status }) => status).sort(), [201, 409])
  const { id: created } = both.find(({ status }) => status === 201)!.json
  const repeat = { status: 409, json: { code: 'already_exists', created } }
  t.match(
    both.find(({ status }) => status === 409),
    repeat,
  )
  t.equal((await call('DELETE', `/hitl/grants/${created}`, { token })).status, 200)
  t.match(await give(id, terms, once), repeat)
  t.match(await give(await approved(), terms, once), { status: 201 })
})

t.test('the requests of an agent that may not call are not granted', async t => {
  const id = await approved()
  t.equal((await call('POST', `/agents/${bot.agent.id}/revoke`, { token: control.admin.token })).status, 200)
  t.match(await give(id), { status: 403, json: { code: 'agent_revoked' } })
})
