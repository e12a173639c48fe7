import t from 'tap'
import { startGateway } from '../fixtures/gateway.ts'
import { startOrigin } from '../fixtures/origin.ts'

const origin = await startOrigin(t)
const writes = [{ field: 'input.method', operator: 'eq', value: 'POST' }]

t.test('a rule in shadow never decides, and is counted and logged', async t => {
  const gateway = await startGateway(t)
  const name = await gateway.policy({
    name: 'trial',
    default: 'Allow',
    rules: [{ name: 'no-writes', effect: 'Deny', mode: 'shadow', conditions: writes }],
  })
  const { token } = await gateway.agent({ policyName: name })
  for (const method of ['POST', 'POST', 'GET']) {
    t.equal((await gateway.proxy(token, origin.url, { method })).status, 200)
  }
  const policy = JSON.parse((await gateway.manage('GET', `/policies/${name}`)).text)
  t.strictSame(policy.shadow, [{ rule: 'no-writes', would: 'Deny', count: 2 }])
  const lines = gateway.log.filter(({ message }) => message === 'exchange')
  t.strictSame(
    lines.map(({ shadow }) => shadow),
    [['no-writes: Deny'], ['no-writes: Deny'], undefined],
  )
})

t.test('a whole policy in shadow of another is evaluated beside it, from the moment it is there', async t => {
  const gateway = await startGateway(t)
  const { token } = await gateway.agent()
  t.equal((await gateway.proxy(token, origin.url, { method: 'POST' })).status, 200)
  const name = await gateway.policy({
    name: 'next',
    shadowOf: 'allow-all',
    default: 'Allow',
    rules: [{ name: 'ask', effect: 'Hitl', conditions: writes }],
  })
  t.equal((await gateway.proxy(token, origin.url, { method: 'POST' })).status, 200, 'it never decides')
  t.equal((await gateway.proxy(token, origin.url)).status, 200)
  const policy = JSON.parse((await gateway.manage('GET', `/policies/${name}`)).text)
  t.strictSame(policy.shadow, [{ rule: 'ask', would: 'Hitl', count: 1 }])
  t.match(gateway.log.filter(({ message }) => message === 'exchange')[1], { shadow: ['next/ask: Hitl'] })
})

t.test('a gateway that only observes lets everything pass and logs what it would have done', async t => {
  const gateway = await startGateway(t, { config: { Policy: { Mode: 'observe' } } })
  const { token } = await gateway.agent({ policyName: null })
  t.equal((await gateway.proxy(token, origin.url)).status, 200)
  t.match(gateway.log.at(-1), { decision: 'Deny', source: 'unassigned', status: 200, durationNs: Number })
  t.match(new Map(gateway.gateway.summary).get('Mode'), /OBSERVE/)
})

t.test('the guardrail of the gateway restricts every policy and grants nothing', async t => {
  const guardrail = {
    name: 'guardrail',
    default: 'Allow',
    rules: [
      { name: 'never', effect: 'Deny', conditions: [{ field: 'input.path', operator: 'startsWith', value: '/x' }] },
    ],
  }
  const gateway = await startGateway(t, {
    config: { Policy: { Global: 'guardrail' }, Policies: [guardrail, { name: 'allow-all', default: 'Allow' }] },
  })
  const { token } = await gateway.agent()
  t.equal((await gateway.proxy(token, `${origin.url}/x`)).status, 403)
  t.equal((await gateway.proxy(token, `${origin.url}/y`)).status, 200)
  const nobody = await gateway.agent({ policyName: null })
  t.equal((await gateway.proxy(nobody.token, `${origin.url}/y`)).status, 403, 'its Allow grants nothing')
})
