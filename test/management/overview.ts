import t from 'tap'
import { decisions, requests } from '../../src/telemetry/layout.ts'
import { startControl } from '../fixtures/control.ts'
import { eventually } from '../fixtures/gateway.ts'
import { startReview } from '../fixtures/review.ts'

t.test('the numbers of the last hour and day, and what is so now', async t => {
  const { call, person, suspend, clock, overview, metrics, recent } = await startControl(t)
  const bot = await person('agent')
  const { token } = await person('reviewer')
  await suspend(bot.agent)
  clock.advance(5_000)
  await overview.sample()
  metrics.count(requests, 'policy_denied')
  metrics.count(decisions, 'deny')
  recent.incidents.note({
    ...{ at: clock.now(), agentId: bot.agent.id, requestId: 'r', method: 'DELETE', origin: 'https://a\u202e.example' },
    ...{ path: '/', outcome: 'policy_denied', denied: true, policy: 'p', rule: null, hitlId: null },
  })
  clock.advance(10_000)
  await overview.sample()
  const { status, json } = await call('GET', '/overview', { token })
  t.equal(status, 200)
  t.match(json, {
    stepSeconds: 10,
    until: '2026-01-05T10:00:10.000Z',
    requests: { denied: [1], forwarded: [0] },
    decisions: { Deny: [1] },
    cost: [0],
    currency: null,
    gauges: { pending: [1], inFlight: [3], circuitsOpen: [2] },
    now: { pending: 1, oldestSeconds: 15, circuitsOpen: 2, inFlight: 3 },
    denials: {
      rules: [{ name: 'p/', count: 1 }],
      hosts: [{ name: 'https://a\\u{202e}.example', count: 1 }],
      agents: [{ id: bot.agent.id, name: 'agent', count: 1 }],
    },
  })
  t.match(await call('GET', '/overview?range=day', { token }), { json: { stepSeconds: 300, requests: { denied: [] } } })
  t.match(await call('GET', '/overview/verdicts', { token }), {
    status: 200,
    json: { since: '2026-01-05T09:00:15.000Z', approved: 0, medianSeconds: null, reviewers: [] },
  })
  t.match(await call('GET', '/overview?range=week', { token }), { status: 400, json: { errors: [{ field: 'range' }] } })
})

t.test('the activity of an agent shows refusals, verdicts and why its trust moved', async t => {
  const { call, bot, reviewer, hold, deny, proxy, origin } = await startReview(t)
  await (await proxy(bot.token, `${origin.url}/fine`)).text()
  await (await proxy(bot.token, `${origin.url}/a?secret=1`, { method: 'DELETE' })).text()
  const id = await hold('/pay')
  await deny(id, { comment: 'no' })
  const { token } = reviewer
  const read = async () =>
    JSON.parse(await (await call('GET', `/agents/${bot.id.toUpperCase()}/activity`, { token })).text())
  // The denials come from two threads, and may be recorded together or one after the other, in any order.
  const isOfPolicy = ({ causes }: { readonly causes: object }) => 'policyDenial' in causes
  const activity = await eventually(read, json => json.incidents.length === 2 && json.trust.some(isOfPolicy))
  t.match(activity, {
    agent: { id: bot.id, status: 'Active', policyName: 'careful' },
    counts: { deniedLast10m: 1, hitlLast24h: 1, humanDeniedLast24h: 1 },
    verdicts: [{ id, status: 'Denied', decidedBy: reviewer.id, comment: 'no' }],
    incidents: [
      { method: 'POST', path: '/pay', outcome: 'suspended', rule: 'posts', hitlId: id },
      {
        method: 'DELETE',
        origin: origin.url,
        path: '/a',
        outcome: 'policy_denied',
        policy: 'careful',
        rule: 'deletes',
      },
    ],
  })
  t.match(activity.trust.find(isOfPolicy), { action: 'agent.trust', actor: 'gateway', causes: { policyDenial: 1 } })
  t.equal((await call('GET', '/agents/nobody/activity', { token })).status, 404)
})
