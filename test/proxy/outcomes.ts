/** Threat T29 of SECURITY.md. */

import t, { type Test } from 'tap'
import { createClock } from '../fixtures/clock.ts'
import { startGateway } from '../fixtures/gateway.ts'
import { startOrigin } from '../fixtures/origin.ts'

const origin = await startOrigin(t)
const clock = createClock(Date.now())
const gateway = await startGateway(t, {
  clock,
  config: {
    System: { RateLimit: { RequestsPerMinute: 60, Burst: 5 } },
    Policies: [
      { name: 'allow-all', default: 'Allow' },
      {
        name: 'careful',
        default: 'Deny',
        rules: [
          { name: 'reads', effect: 'Allow', conditions: [{ field: 'input.method', operator: 'eq', value: 'GET' }] },
          {
            name: 'writes-need-a-person',
            effect: 'Hitl',
            reason: 'Writing needs approval',
            conditions: [{ field: 'input.method', operator: 'eq', value: 'POST' }],
          },
        ],
      },
    ],
  },
})
const target = `${origin.url}/things`

/** The upstream saw nothing, and the answer says that it is the gateway's own. */
async function refused(t: Test, answer: Response, status: number, code: string): Promise<void> {
  t.equal(answer.status, status)
  t.equal(answer.headers.get('gateway-error'), code)
  t.equal(answer.headers.get('cache-control'), 'no-store')
  t.strictSame(origin.seen, [], 'the upstream saw nothing')
  const text = await answer.text()
  if (status !== 401) t.match(JSON.parse(text), { status, code, title: String, detail: String, requestId: String })
}

t.beforeEach(() => {
  origin.seen.length = 0
  clock.advance(60_000)
})

t.test('no token, a malformed one, or one in the wrong header is 401 with the text of the specification', async t => {
  for (const [headers, why] of [
    [{}, /^Bearer error_description=/],
    [{ 'Gateway-Authorization': 'Bearer' }, /^Bearer error="invalid_request", /],
    [{ 'Gateway-Authorization': 'Basic abc' }, /^Bearer error="invalid_request", /],
    [{ 'Gateway-Authorization': 'Bearer not-a-token' }, /^Bearer error="invalid_token", /],
    [{ Authorization: `Bearer ${gateway.adminToken}` }, /^Bearer error_description=/],
  ] as const) {
    const answer = await gateway.proxy(undefined, target, { headers })
    t.equal(await answer.clone().text(), 'Missing or invalid authentication')
    t.match(answer.headers.get('www-authenticate'), why)
    await refused(t, answer, 401, 'unauthenticated')
  }
})

t.test('an expired token is 401', async t => {
  const { token } = await gateway.agent()
  t.equal((await gateway.proxy(token, target)).status, 200)
  origin.seen.length = 0
  clock.advance(16 * 60_000)
  await refused(t, await gateway.proxy(token, target), 401, 'unauthenticated')
})

for (const [change, code] of [
  ['revoke', 'agent_revoked'],
  ['quarantine', 'agent_quarantined'],
  ['deactivate', 'agent_inactive'],
] as const) {
  t.test(`after ${change} the very next request is 403 ${code}`, async t => {
    const { id, token } = await gateway.agent()
    t.equal((await gateway.proxy(token, target)).status, 200)
    origin.seen.length = 0
    t.equal((await gateway.manage('POST', `/agents/${id}/${change}`)).status, 200)
    await refused(t, await gateway.proxy(token, target), 403, code)
  })
}

t.test('a deleted agent is 401 on the very next request', async t => {
  const { id, token } = await gateway.agent()
  t.equal((await gateway.manage('DELETE', `/agents/${id}`)).status, 200)
  await refused(t, await gateway.proxy(token, target), 401, 'unauthenticated')
})

t.test('what the policy denies is 403, and the agent learns neither values nor other rules', async t => {
  const { token } = await gateway.agent({ policyName: 'careful' })
  const answer = await gateway.proxy(token, target, { method: 'DELETE' })
  t.notMatch(await answer.clone().text(), /reads|writes-need/)
  await refused(t, answer, 403, 'policy_denied')
})

t.test('an agent without a policy, or with one that is gone, is denied', async t => {
  const name = await gateway.policy({ name: `short-lived`, default: 'Allow' })
  const { id, token } = await gateway.agent({ policyName: name })
  t.equal((await gateway.proxy(token, target)).status, 200)
  origin.seen.length = 0
  t.equal((await gateway.manage('PUT', `/agents/${id}/policy`, { policyName: null })).status, 200)
  await refused(t, await gateway.proxy(token, target), 403, 'policy_denied')
})

t.test('a new policy assignment counts on the very next request', async t => {
  const { id, token } = await gateway.agent({ policyName: 'careful' })
  await refused(t, await gateway.proxy(token, target, { method: 'DELETE' }), 403, 'policy_denied')
  await gateway.manage('PUT', `/agents/${id}/policy`, { policyName: 'allow-all' })
  t.equal((await gateway.proxy(token, target, { method: 'DELETE' })).status, 200)
})

t.test('what needs a person is 202 with the place to look', async t => {
  const { token } = await gateway.agent({ policyName: 'careful' })
  const answer = await gateway.proxy(token, target, { method: 'POST', body: 'x' })
  t.equal(answer.status, 202)
  t.match(answer.headers.get('location'), /^\/hitl\/status\/[\w-]{20,}$/)
  t.equal(answer.headers.get('retry-after'), '5')
  t.equal(answer.headers.get('cache-control'), 'no-store')
  t.match(await answer.text(), /Poll \/hitl\/status\/[\w-]+/)
  t.strictSame(origin.seen, [], 'the upstream saw nothing')
})

t.test('a program that asks for JSON gets the place to look as JSON', async t => {
  const { token } = await gateway.agent({ policyName: 'careful' })
  const answer = await gateway.proxy(token, target, { method: 'POST', headers: { Accept: 'application/json' } })
  const body = (await answer.json()) as Record<string, unknown>
  t.match(body, { status: 'Pending', statusUrl: answer.headers.get('location'), retryAfter: 5, expiresAt: /Z$/ })
})

t.test('the burst passes, one more is 429 with the time to wait, and an agent has its own', async t => {
  // Over several gateways a request more may pass: test/limits/fleet.ts.
  const config = { System: { RateLimit: { RequestsPerMinute: 60, Burst: 5 } }, Fleet: { RateLimits: 'PerGateway' } }
  const gateway = await startGateway(t, { clock, config, alone: 'rates of calls are a gateway’s own' })
  const { token } = await gateway.agent()
  for (let i = 0; i < 5; i++) t.equal((await gateway.proxy(token, target)).status, 200)
  origin.seen.length = 0
  const answer = await gateway.proxy(token, target)
  t.equal(answer.headers.get('retry-after'), '1')
  t.match(answer.headers.get('ratelimit'), /r=0;t=1/)
  await refused(t, answer, 429, 'rate_limited')
  const other = await gateway.agent()
  t.equal((await gateway.proxy(other.token, target)).status, 200)
})

t.test('a target that is not an absolute URL is 400 with the reason', async t => {
  const { token } = await gateway.agent()
  for (const bad of ['', 'api.example.com/x', 'ftp://a.example/', 'http://a.example/../x%2e', 'http:/a.example/x']) {
    const answer = await fetch(`${gateway.url}/proxy/${bad}`, {
      headers: { 'Gateway-Authorization': `Bearer ${token}` },
    })
    if (answer.status === 404) continue
    await refused(t, answer, 400, 'invalid_target')
    clock.advance(1_000)
  }
})
