/**
 * Nobody waits for a thread that does not take connections yet. The one in the place of a dead one took some while it was
 * still compiling the policy that had been changed meanwhile, and went by the one before.
 */

import t from 'tap'
import { startGateway } from '../fixtures/gateway.ts'
import { openKept } from '../fixtures/kept.ts'
import { startOrigin } from '../fixtures/origin.ts'

/** Long enough to compile that a connection could come in between. */
const rules = Array.from({ length: 3_000 }, (_, index) => ({
  name: `rule-${index}`,
  effect: 'Deny',
  conditions: [{ field: 'input.path', operator: 'pathMatches', value: `/nothing/${index}/*` }],
}))

const wait = (ms: number) => new Promise(resolve => setTimeout(resolve, ms))

t.test('a thread that takes the place of another goes by what was changed before it takes connections', async t => {
  const origin = await startOrigin(t)
  const limits = { Server: { Threads: 2 }, RateLimit: { RequestsPerMinute: 1_000_000, Burst: 1_000_000 } }
  const config = { System: limits, Trust: { QuarantineDenials: 0, QuarantineBelow: 0 } }
  const gateway = await startGateway(t, { config })
  const name = await gateway.policy({ name: 'moving', default: 'Allow' })
  const { token } = await gateway.agent({ policyName: name })
  // One that lived for less than a second is not replaced at once.
  await wait(1_100)
  await gateway.gateway.pool?.kill(1)
  await wait(100)
  t.equal((await gateway.manage('PUT', `/policies/${name}`, { default: 'Deny', rules })).status, 200)

  const headers = { 'Gateway-Authorization': `Bearer ${token}` }
  const end = performance.now() + 2_500
  while (performance.now() < end) {
    const clients = openKept(t, gateway.port, 8)
    await Promise.all(clients.map(client => client.call(`/proxy/${origin.url}/`, { headers })))
    for (const client of clients) client.close()
  }
  t.equal(origin.seen.length, 0, 'nothing passed after the change was answered')
})
