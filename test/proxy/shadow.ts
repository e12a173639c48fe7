import t from 'tap'
import type { TestGateway } from '../fixtures/gateway.ts'
import { eventually, startGateway } from '../fixtures/gateway.ts'
import { startOrigin } from '../fixtures/origin.ts'

const origin = await startOrigin(t)
const writes = [{ field: 'input.method', operator: 'eq', value: 'POST' }]

/** Counts of a policy, once there are any. */
async function countsOf({ manage }: TestGateway, name: string): Promise<readonly { readonly count: number }[]> {
  const read = async () => JSON.parse((await manage('GET', `/policies/${name}`)).text).shadow
  return eventually(read, shadow => shadow.length > 0)
}

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
  t.strictSame(await countsOf(gateway, name), [{ rule: 'no-writes', would: 'Deny', count: 2 }])
  const lines = await gateway.exchanges(3)
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
  t.strictSame(await countsOf(gateway, name), [{ rule: 'ask', would: 'Hitl', count: 1 }])
  const [, line] = await gateway.exchanges(2)
  t.match(line, { shadow: ['next/ask: Hitl'] })
})

t.test('a gateway that only observes lets everything pass and logs what it would have done', async t => {
  const gateway = await startGateway(t, { config: { Policy: { Mode: 'observe' } } })
  const { token } = await gateway.agent({ policyName: null })
  t.equal((await gateway.proxy(token, origin.url)).status, 200)
  const [line] = await gateway.exchanges(1)
  t.match(line, { decision: 'Deny', source: 'unassigned', status: 200, durationNs: Number })
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
