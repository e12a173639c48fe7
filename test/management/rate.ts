/** Threat T01 of SECURITY.md. */

import t from 'tap'
import { createClock } from '../fixtures/clock.ts'
import { fleetSize } from '../fixtures/fleet.ts'
import { startGateway } from '../fixtures/gateway.ts'
import { testdir } from '../fixtures/testdir.ts'

const limited = { System: { ManagementRateLimit: { RequestsPerMinute: 6, Burst: 40 } } }

t.test('a caller has a pace: then 429 with Retry-After, for it alone, and a line in the log', async t => {
  const gateway = await startGateway(t, { config: limited })
  const [noisy, quiet] = [await gateway.agent(), await gateway.agent()]
  const answers = await Promise.all(
    Array.from({ length: 120 }, () => gateway.manage('GET', '/agents', undefined, noisy.token)),
  )
  const refused = answers.filter(({ status }) => status === 429)
  t.equal(answers.filter(({ status }) => status === 403).length + refused.length, 120)
  // Gateways that wait too long for the database let their shares pass, one burst at most.
  t.ok(refused.length >= 30, `${refused.length} were refused`)
  for (const { headers } of refused) {
    t.equal(headers.get('gateway-error'), 'rate_limited')
    t.match(headers.get('retry-after'), /^[1-9]\d*$/)
  }
  t.equal((await gateway.manage('GET', '/agents', undefined, quiet.token)).status, 403, 'others go on')
  const lines = gateway.log.filter(line => line.message === 'a limit was reached')
  t.ok(lines.length > 0 && lines.length <= fleetSize, `${lines.length} lines`)
  for (const line of lines) t.match(line, { limit: 'management_rate', agentId: noisy.id })
})

t.test('300 forbidden calls are two entries of the audit trail, and none is lost at the stop', async t => {
  const directory = testdir(t)
  const clock = createClock(Date.now())
  const gateway = await startGateway(t, { directory, clock, alone: 'each gateway counts refused calls' })
  const { id, token } = await gateway.agent()
  await Promise.all(Array.from({ length: 300 }, () => gateway.manage('GET', '/agents', undefined, token)))
  const entries = async (from: typeof gateway) =>
    JSON.parse((await from.manage('GET', `/audit?actor=${id}&action=management.refused`)).text).items
  t.equal((await entries(gateway)).length, 1, 'the first at once')
  await gateway.close()
  const again = await startGateway(t, { directory, clock, alone: 'as the first' })
  const items = await entries(again)
  t.equal(items.length, 2)
  t.match(items[0], { subject: 'listAgents', details: { count: 299, roles: ['agent'], since: String } })
})

t.test('refused verdicts on a request of its own are counted in the same way', async t => {
  const gateway = await startGateway(t, { alone: 'each gateway counts refused calls' })
  const policyName = await gateway.policy({ name: 'held', default: 'Hitl' })
  const own = await gateway.agent({ policyName, roles: ['agent', 'reviewer'] })
  const held = await gateway.proxy(own.token, 'http://127.0.0.1:9/')
  await held.body?.cancel()
  const path = `/hitl/${held.headers.get('gateway-hitl-id')}/approve`
  for (let times = 0; times < 20; times++) {
    t.equal((await gateway.manage('POST', path, {}, own.token)).status, 403)
  }
  const { totalCount } = JSON.parse((await gateway.manage('GET', '/audit?action=hitl.refused')).text)
  t.equal(totalCount, 1)
})
