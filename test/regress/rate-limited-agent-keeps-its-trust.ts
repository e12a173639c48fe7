/** Of 400 allowed requests in a row 75 were refused with 429; each took trust, and the agent was quarantined. */

import t from 'tap'
import { eventually, startGateway } from '../fixtures/gateway.ts'
import { startOrigin } from '../fixtures/origin.ts'
import { scrape } from '../fixtures/scrape.ts'
import { readEvents } from '../fixtures/sse.ts'

const origin = await startOrigin(t)

t.test('an agent that runs into its rate limit loses nothing but time', async t => {
  const config = { System: { RateLimit: { RequestsPerMinute: 1, Burst: 5 } } }
  const gateway = await startGateway(t, { config })
  const { id, token } = await gateway.agent()
  const statuses = []
  for (let count = 0; count < 60; count++) statuses.push((await gateway.proxy(token, origin.url)).status)
  t.ok(statuses.filter(status => status === 429).length > 40)
  const { trustScore, status } = JSON.parse((await gateway.manage('GET', `/agents/${id}`)).text)
  t.equal(status, 'Active')
  t.ok(trustScore >= 0.5, `${trustScore}`)
  t.match(JSON.parse((await gateway.manage('GET', `/audit?subject=${id}&action=agent.trust`)).text), { totalCount: 0 })
})

t.test('a quarantine by the gateway is logged, counted and published, with its cause', async t => {
  const gateway = await startGateway(t, { config: { Trust: { QuarantineDenials: 3 } } })
  const name = await gateway.policy({ name: 'closed', default: 'Deny' })
  const { id, token } = await gateway.agent({ policyName: name })
  const events = await readEvents(t, `${gateway.url}/hitl/events`, { Authorization: `Bearer ${gateway.adminToken}` })
  for (let count = 0; count < 3; count++) t.equal((await gateway.proxy(token, origin.url)).status, 403)
  const line = await eventually(
    async () => gateway.log.find(({ message }) => message === 'agent quarantined'),
    found => found !== undefined,
  )
  t.match(line, { agentId: id, reason: 'denials' })
  t.match(await events.next(), {
    event: 'quarantined',
    data: { hitlId: null, data: { agentId: id, agentName: String, cause: 'denials' } },
  })
  const { values } = scrape((await gateway.manage('GET', '/metrics')).text)
  t.equal(values.get('agent_gateway_quarantines_total{cause="denials"}'), 1)
})
