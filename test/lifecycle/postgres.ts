/** A gateway on PostgreSQL: what it keeps, and what it does while the database is away (T45). */

import t from 'tap'
import { verifyTrail } from '../../src/audit/trail.ts'
import { openPostgresTrail } from '../../src/storage/postgres/trail.ts'
import { fetchDocumented } from '../fixtures/documented.ts'
import { eventually, onDatabase, startGateway, type TestGateway } from '../fixtures/gateway.ts'
import { startOrigin } from '../fixtures/origin.ts'
import { createSchema } from '../fixtures/postgres.ts'
import { startTcpProxy } from '../fixtures/tcp-proxy.ts'

const proxyHealth = async ({ url }: TestGateway): Promise<unknown> =>
  await (await fetchDocumented(`${url}/health/proxy`)).json()

const health = async ({ manage }: TestGateway): Promise<number> => (await manage('GET', '/health')).status

t.test('a restart keeps agents, policies, grants, held requests, tokens and the audit trail', async t => {
  const origin = await startOrigin(t)
  const settings = { ...(await createSchema(t)), timeoutSeconds: 2 }
  const config = onDatabase(settings)
  const first = await startGateway(t, { config })
  const policy = await first.policy({ name: 'ask', default: 'Hitl' })
  const [agent, other, revoked] = [await first.agent({ policyName: policy }), await first.agent(), await first.agent()]
  const hold = async (path: string) => {
    const held = await first.proxy(agent.token, `${origin.url}${path}`, { method: 'POST', body: path })
    t.equal(held.status, 202)
    const { id } = JSON.parse((await first.manage('GET', held.headers.get('location')!)).text)
    return `/hitl/${id}`
  }
  const [approved, granted, pending] = [await hold('/approved'), await hold('/granted'), await hold('/pending')]
  t.equal((await first.manage('POST', `${approved}/approve`)).status, 200)
  t.equal((await first.manage('POST', `${granted}/approve`, { grant: { minutes: 60, maxUses: 5 } })).status, 200)
  t.equal((await first.manage('POST', `/agents/${revoked.id}/revoke`)).status, 200)
  t.equal((await first.proxy(revoked.token, origin.url)).status, 403)
  t.equal((await first.proxy(other.token, origin.url)).status, 200)
  t.match(first.gateway.summary, [['Storage', /^PostgreSQL: database postgres at 127\.0\.0\.1:\d+, schema test_\w+$/]])
  await first.close()

  const second = await startGateway(t, { config })
  t.equal((await second.proxy(revoked.token, origin.url)).status, 403)
  t.equal((await second.proxy(other.token, origin.url)).status, 200, 'the token of before is still good')
  const again = await second.proxy(agent.token, `${origin.url}/granted`, { method: 'POST', body: '/granted' })
  t.equal(again.status, 200, 'the grant holds')
  t.match(JSON.parse((await second.manage('GET', approved)).text), { status: 'Approved' })
  const sent = origin.seen.length
  t.equal((await second.manage('POST', `${pending}/approve`)).status, 200)
  t.equal(origin.seen.length, sent + 1)
  const trail = openPostgresTrail(settings)
  t.teardown(() => trail.close())
  t.match(await verifyTrail(trail), { ok: true })
})

t.test('while the database is away writes get 503; it comes back by itself', async t => {
  const origin = await startOrigin(t)
  const settings = { ...(await createSchema(t)), timeoutSeconds: 2 }
  const url = new URL(settings.connectionString)
  const line = await startTcpProxy(t, Number(url.port))
  url.port = String(line.port)
  const config = { ...onDatabase({ ...settings, connectionString: url.href }), Fleet: { FenceAfterSeconds: 20 } }
  const gateway = await startGateway(t, { config })
  const agent = await gateway.agent()
  line.onSend = () => false
  line.answers = false
  const body = { name: 'late', ownerId: 'team-a', clientSecret: 'a-secret-of-the-tests' }
  t.match(await gateway.manage('POST', '/agents', body), { status: 503, text: /"store_unavailable"/ })
  t.equal((await gateway.proxy(agent.token, origin.url)).status, 200, 'what is allowed goes on for a while')
  t.equal(await health(gateway), 503)
  t.match(await proxyHealth(gateway), { status: 'Healthy' })
  await eventually(
    async () => (await gateway.manage('GET', '/agents')).status,
    status => status === 503,
  )
  t.match(await (await gateway.proxy(agent.token, origin.url)).json(), { code: 'fenced' })
  t.match(await gateway.manage('GET', '/agents'), { status: 503, text: /"fenced"/ })
  t.match(await proxyHealth(gateway), { status: 503, code: 'fenced' })
  line.onSend = () => true
  line.answers = true
  line.cut()
  await eventually(
    async () => (await gateway.manage('GET', '/agents')).status,
    status => status === 200,
  )
  t.equal((await gateway.proxy(agent.token, origin.url)).status, 200)
  t.equal((await gateway.manage('POST', '/agents', body)).status, 201)
})
