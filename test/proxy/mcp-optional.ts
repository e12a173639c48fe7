/** The requests that MCP clients send by themselves: refused without a cost where the policy names their URL for messages. */
import t from 'tap'
import { eventually, startGateway } from '../fixtures/gateway.ts'
import { startOrigin } from '../fixtures/origin.ts'

const gateway = await startGateway(t)
const origin = await startOrigin(t)
const url = `${origin.url}/mcp`
const is = (field: string, value: unknown, operator = 'eq') => ({ field, operator, value })
const messages = is('mcp.method', ['initialize', 'ping'], 'in')
const rule = (name: string, effect: string, ...conditions: object[]) => ({ name, effect, conditions })
const named = rule('messages', 'Allow', is('input.url', url), messages)
const stream = { Accept: 'text/event-stream' }
const session = { 'Mcp-Session-Id': 'a', 'MCP-Protocol-Version': '2025-11-25' }

let count = 0
async function agentWith(rules: readonly object[], fallback = 'Deny') {
  const policyName = await gateway.policy({ name: `optional-${++count}`, default: fallback, rules })
  const { id, token } = await gateway.agent({ policyName })
  const trust = async () => JSON.parse((await gateway.manage('GET', `/agents/${id}`)).text).trustScore as number
  const status = async () => JSON.parse((await gateway.manage('GET', `/agents/${id}`)).text).status as string
  return { id, token, trust, status }
}

const denied = 0.02

t.test('they get 405 and cost nothing, however often', async t => {
  const { token, trust, status } = await agentWith([named])
  for (let time = 0; time < 20; time++) {
    const opened = await gateway.proxy(token, url, { headers: { ...stream, ...(time > 0 ? session : {}) } })
    t.match([opened.status, opened.headers.get('allow')], [405, 'POST'])
    t.equal(opened.headers.get('gateway-error'), 'mcp_post_only')
    const ended = await gateway.proxy(token, url, { method: 'DELETE', headers: session })
    t.equal(ended.status, 405)
  }
  // Trust is written in order: this one tells that nothing came before it.
  t.equal((await gateway.proxy(token, url)).status, 403)
  t.ok(Math.abs((await eventually(trust, value => value < 0.5)) - (0.5 - denied)) < 0.001)
  t.equal(await status(), 'Active')
  t.strictSame(origin.seen, [])
})

t.test('they are no denials for rules and reports', async t => {
  const counted = rule('often', 'Deny', is('agent.deniedLast10m', 1, 'gte'))
  const { id, token } = await agentWith([counted, named])
  for (let time = 0; time < 3; time++) {
    t.equal((await gateway.proxy(token, url, { headers: stream })).headers.get('gateway-error'), 'mcp_post_only')
  }
  const lines = () => gateway.log.filter(({ agentId, message }) => agentId === id && message === 'exchange')
  const expected = { status: 405, refusal: 'mcp_post_only', decision: 'Deny', source: 'default' }
  t.match(await eventually(lines, ({ length }) => length === 3), [expected, expected, expected])
})

t.test('a policy that allows them lets them pass', async t => {
  const { token } = await agentWith([named, rule('stream', 'Allow', is('input.url', url), is('input.method', 'GET'))])
  origin.seen.length = 0
  t.equal((await gateway.proxy(token, url, { headers: stream })).status, 200)
  t.match(origin.seen, [{ method: 'GET' }])
})

/** What an agent sends that adds the header fields to other requests. */
const others: Readonly<Record<string, [readonly object[], string, RequestInit]>> = {
  'another path of the server': [[named], `${origin.url}/admin`, { headers: { ...stream, ...session } }],
  'a longer path': [[named], `${url}/x`, { headers: stream }],
  'another query': [[named], `${url}?a`, { headers: stream }],
  'another host': [[named], url.replace('127.0.0.1', 'localhost'), { headers: stream }],
  'a path that can be read in two ways': [
    [rule('messages', 'Allow', is('input.host', '127.0.0.1'), is('input.path', '/mcp%2F'), messages)],
    `${url}%2F`,
    { headers: stream },
  ],
  'no request for a stream': [[named], url, { headers: session }],
  'another method': [[named], url, { method: 'PUT', headers: { ...stream, ...session } }],
  'the end of no session': [[named], url, { method: 'DELETE', headers: stream }],
  'a body': [[named], url, { method: 'DELETE', headers: session, body: 'x' }],
  'a message that is denied': [[named], url, { method: 'POST', headers: { ...stream, ...session }, body: '{}' }],
  'rules that name no URL': [[rule('messages', 'Allow', messages)], url, { headers: stream }],
  'rules that name the host alone': [
    [rule('messages', 'Allow', is('input.host', '127.0.0.1'), messages)],
    url,
    { headers: stream },
  ],
  'a Deny rule': [[rule('none', 'Deny', is('input.method', 'GET')), named], url, { headers: stream }],
  'a Deny rule for messages': [
    [{ ...rule('none', 'Deny', is('input.method', 'POST')), priority: 10 }, named],
    url,
    { headers: stream },
  ],
  'rules without messages': [
    [rule('post', 'Allow', is('input.url', url), is('input.method', 'POST'))],
    url,
    { headers: stream },
  ],
}

for (const [title, [rules, target, init]] of Object.entries(others)) {
  t.test(`${title}: 403, and it costs trust`, async t => {
    const { token, trust } = await agentWith(rules)
    const answer = await gateway.proxy(token, target, init)
    t.match([answer.status, answer.headers.get('gateway-error')], [403, 'policy_denied'])
    t.ok(Math.abs((await eventually(trust, value => value < 0.5)) - (0.5 - denied)) < 0.001)
  })
}

t.test('the policy for all agents denies as ever', async t => {
  const guarded = await startGateway(t, {
    config: {
      Policy: { Global: 'guard' },
      Policies: [
        { name: 'guard', default: 'Allow', rules: [rule('none', 'Deny', is('input.method', 'GET'))] },
        { name: 'orders', default: 'Deny', rules: [named] },
      ],
    },
  })
  const { token } = await guarded.agent({ policyName: 'orders' })
  t.equal((await guarded.proxy(token, url, { headers: stream })).headers.get('gateway-error'), 'policy_denied')
})
