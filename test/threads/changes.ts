/** Threat T15 of SECURITY.md. */

import t from 'tap'
import { eventually, startGateway } from '../fixtures/gateway.ts'
import { enough, openKept } from '../fixtures/kept.ts'
import { startOrigin } from '../fixtures/origin.ts'

const origin = await startOrigin(t)
const gateway = await startGateway(t, {
  config: {
    // A test asks until something is known.
    System: { Server: { Threads: 2 }, RateLimit: { RequestsPerMinute: 1_000_000, Burst: 1_000_000 } },
    // So many denials would bring an agent into quarantine.
    Trust: { QuarantineDenials: 0, QuarantineBelow: 0 },
  },
})
const clients = openKept(t, gateway.port)

/** Statuses of the next request on every connection. */
async function all(token: string, method = 'GET'): Promise<readonly number[]> {
  const headers = { 'Gateway-Authorization': `Bearer ${token}` }
  const answers = await Promise.all(clients.map(client => client.call(`/proxy/${origin.url}/`, { method, headers })))
  return [...new Set(answers.map(({ status }) => status))]
}

t.test('what is changed holds in every thread with the answer to the change', async t => {
  const { id, token } = await gateway.agent()
  t.strictSame(await all(token), [200])
  for (const [action, status] of [
    ['quarantine', 403],
    ['lift-quarantine', 200],
    ['revoke', 403],
  ] as const) {
    t.equal((await gateway.manage('POST', `/agents/${id}/${action}`)).status, 200, action)
    t.strictSame(await all(token), [status], action)
  }
  t.equal((await gateway.manage('DELETE', `/agents/${id}`)).status, 200)
  t.strictSame(await all(token), [401])
})

t.test('so does a policy that is made, replaced and removed', async t => {
  const { id, token } = await gateway.agent()
  const name = await gateway.policy({ name: 'moving', default: 'Deny' })
  t.equal((await gateway.manage('PUT', `/agents/${id}/policy`, { policyName: name })).status, 200)
  t.strictSame(await all(token), [403])
  const rules = [
    { name: 'get', effect: 'Allow', conditions: [{ field: 'input.method', operator: 'eq', value: 'GET' }] },
  ]
  t.equal((await gateway.manage('PUT', `/policies/${name}`, { default: 'Deny', rules })).status, 200)
  t.strictSame(await all(token), [200])
  t.strictSame(await all(token, 'PUT'), [403])
  t.equal((await gateway.manage('PUT', `/agents/${id}/policy`, { policyName: 'allow-all' })).status, 200)
  t.equal((await gateway.manage('DELETE', `/policies/${name}`)).status, 200)
  t.strictSame(await all(token, 'PUT'), [200])
})

t.test('an agent that was registered a moment ago is known in every thread', async t => {
  const { token } = await gateway.agent()
  t.strictSame(await all(token), [200])
})

t.test('what agents did is known to all threads soon', async t => {
  const name = await gateway.policy({
    name: 'few',
    default: 'Allow',
    rules: [
      {
        name: 'puts',
        effect: 'Deny',
        conditions: [{ field: 'input.method', operator: 'eq', value: 'PUT' }],
      },
      {
        name: 'many',
        effect: 'Deny',
        conditions: [{ field: 'agent.deniedLast10m', operator: 'gte', value: enough }],
      },
    ],
  })
  const { token } = await gateway.agent({ policyName: name })
  // Denied by both threads, so that neither has seen them all. What asks is no such request before they are known.
  t.strictSame(await all(token, 'PUT'), [403])
  await eventually(
    () => all(token),
    ([status, ...others]) => status === 403 && others.length === 0,
  )
  t.pass('every thread refuses')
})
