import t from 'tap'
import { eventually, startGateway, type TestGateway } from '../fixtures/gateway.ts'
import { startOrigin } from '../fixtures/origin.ts'

const origin = await startOrigin(t)
const writes = [{ field: 'input.method', operator: 'eq', value: 'POST' }]

/** What a policy has counted, once it is so many: other threads tell of theirs a little later. */
async function countsOf({ manage }: TestGateway, name: string, sum: number): Promise<readonly unknown[]> {
  const read = async (): Promise<readonly { readonly count: number }[]> =>
    JSON.parse((await manage('GET', `/policies/${name}`)).text).shadow
  return eventually(read, shadow => shadow.reduce((all, { count }) => all + count, 0) >= sum)
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
  t.strictSame(await countsOf(gateway, name, 2), [{ rule: 'no-writes', would: 'Deny', count: 2 }])
  const lines = await gateway.exchanges(3)
  t.strictSame(lines.map(({ method, shadow = [] }) => `${method} ${shadow}`).sort(), [
    'GET ',
    'POST no-writes: Deny',
    'POST no-writes: Deny',
  ])
})

t.test('a rule in shadow on the first call to a host is reported for that call alone', async t => {
  const gateway = await startGateway(t)
  const name = await gateway.policy({
    name: 'trial',
    default: 'Allow',
    rules: [
      {
        name: 'new-host',
        effect: 'Hitl',
        mode: 'shadow',
        conditions: [{ field: 'agent.hostSeen', operator: 'eq', value: 'false' }],
      },
    ],
  })
  const { token } = await gateway.agent({ policyName: name })
  const call = async (count: number): Promise<string> => {
    t.equal((await gateway.proxy(token, origin.url)).status, 200)
    return `${(await gateway.exchanges(count)).at(-1)?.shadow ?? ''}`
  }
  t.equal(await call(1), 'new-host: Hitl')
  // Another thread hears of the call a little later.
  let calls = 1
  t.equal(
    await eventually(
      () => call(++calls),
      shadow => shadow === '',
    ),
    '',
  )
  t.match(await countsOf(gateway, name, 1), [{ rule: 'new-host', would: 'Hitl' }])
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
  t.strictSame(await countsOf(gateway, name, 1), [{ rule: 'ask', would: 'Hitl', count: 1 }])
  const lines = await gateway.exchanges(3)
  t.strictSame(
    lines.flatMap(({ shadow = [] }) => shadow),
    ['next/ask: Hitl'],
  )
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
