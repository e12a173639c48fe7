/** Requests of MCP clients that name their method and tool in header fields (MCP 2026-07-28).T63. */

import t from 'tap'
import { startGateway } from '../fixtures/gateway.ts'
import { startOrigin } from '../fixtures/origin.ts'
import { openRaw } from '../fixtures/raw.ts'

const tool = (operator: string, value: string) => ({ field: 'mcp.tool', operator, value })
const rules = [
  { name: 'no-drop', effect: 'Deny', reason: 'Nothing is dropped', conditions: [tool('eq', 'drop')] },
  { name: 'batches', effect: 'Allow', conditions: [{ field: 'mcp.method', operator: 'eq', value: 'ping' }] },
]
const gateway = await startGateway(t, {
  config: {
    Policies: [{ name: 'allow-all', default: 'Allow', rules }],
    Proxy: { MaxEvaluatedBodyBytes: 65_536 },
    // These tests are denied often.
    Trust: { QuarantineDenials: 0, QuarantineBelow: 0 },
  },
})
const { token } = await gateway.agent()
const pings = await gateway.policy({ name: 'pings', default: 'Deny', rules: rules.slice(1) })
const pinger = await gateway.agent({ policyName: pings })
const origin = await startOrigin(t, (req, res) => req.resume().on('end', () => res.end('{"jsonrpc":"2.0"}')))

t.beforeEach(() => {
  origin.seen.length = 0
})

const call = (name: string) => ({ jsonrpc: '2.0', id: 7, method: 'tools/call', params: { name, arguments: {} } })
const mcpHeaders = {
  Accept: 'application/json, text/event-stream',
  'Content-Type': 'application/json',
  'MCP-Protocol-Version': '2026-07-28',
}

function send(heads: Readonly<Record<string, string>>, body: unknown, bearer = token): Promise<Response> {
  const headers = { ...mcpHeaders, ...heads }
  return gateway.proxy(bearer, `${origin.url}/mcp`, { method: 'POST', body: JSON.stringify(body), headers })
}

t.test('heads that agree with their body pass on, and reach the server', async t => {
  const answer = await send({ 'Mcp-Method': 'tools/call', 'Mcp-Name': 'add' }, call('add'))
  t.equal(answer.status, 200)
  t.match(origin.seen, [{ headers: { 'mcp-method': 'tools/call', 'mcp-name': 'add' }, body: /"add"/ }])
})

t.test('heads that do not agree get 400 with the JSON-RPC error of the protocol', async t => {
  const answer = await send({ 'Mcp-Method': 'tools/call', 'Mcp-Name': 'add' }, call('drop'))
  t.match([answer.status, answer.headers.get('gateway-error')], [400, 'mcp_mismatch'])
  t.match(await answer.json(), {
    ...{ jsonrpc: '2.0', id: 7 },
    error: { code: -32_020, message: 'Mcp-Name does not match the body.', data: { code: 'mcp_mismatch', status: 400 } },
  })
  const plain = await send({ 'Mcp-Method': 'tools/call', Accept: '*/*' }, { jsonrpc: '2.0', id: 7, method: 'ping' })
  t.match([plain.status, await plain.json()], [400, { code: 'mcp_mismatch' }])
  t.strictSame(origin.seen, [])
})

t.test('a gateway that only observes lets them pass and logs what it would have done', async t => {
  const lax = await startGateway(t, { config: { Policy: { Mode: 'observe' } } })
  const { token } = await lax.agent()
  const headers = { ...mcpHeaders, 'Mcp-Method': 'ping' }
  const answer = await lax.proxy(token, `${origin.url}/mcp`, {
    method: 'POST',
    body: JSON.stringify(call('add')),
    headers,
  })
  t.equal(answer.status, 200)
  t.match(await lax.exchanges(1), [{ decision: 'Deny', source: 'mcp-mismatch', ending: 'forwarded' }])
})

t.test('a body that cannot be read agrees with no heads', async t => {
  const headers = { ...mcpHeaders, 'Mcp-Method': 'tools/call', 'Mcp-Name': 'add' }
  const bodies = [
    `${JSON.stringify(call('add')).slice(0, -1)},"id":8}`,
    JSON.stringify({ ...call('add'), x: 'x'.repeat(65_536) }),
  ]
  for (const body of bodies) {
    const answer = await gateway.proxy(token, `${origin.url}/mcp`, { method: 'POST', body, headers })
    t.match([answer.status, answer.headers.get('gateway-error')], [400, 'mcp_mismatch'])
  }
  t.strictSame(origin.seen, [])
})

t.test('what the heads show to be denied is refused before the upload', async t => {
  const raw = await openRaw(t, gateway.port)
  const lines = [
    `POST /proxy/${origin.url}/mcp HTTP/1.1`,
    'Host: gateway',
    `Gateway-Authorization: Bearer ${token}`,
    ...Object.entries(mcpHeaders).map(([name, value]) => `${name}: ${value}`),
    'Mcp-Method: tools/call',
    'Mcp-Name: =?base64?ZHJvcA==?=',
    'Content-Length: 100000',
  ]
  raw.write(`${lines.join('\r\n')}\r\n\r\n{"jsonrpc":`)
  const text = await raw.until(/\r\n\r\n\{.*\}/)
  t.match(text, /^HTTP\/1\.1 403 /)
  t.match(text, /Gateway-Error: policy_denied/)
  t.match(text, /Nothing is dropped/)
  t.strictSame(origin.seen, [])
})

t.test('a short refused message is answered by its id', async t => {
  const answer = await send({ 'Mcp-Method': 'tools/call', 'Mcp-Name': 'drop' }, call('drop'))
  t.match(
    [answer.status, await answer.json()],
    [200, { id: 7, error: { code: -32_010, message: /Nothing is dropped/ } }],
  )
})

t.test('a rule that lets one message of a batch pass does not let the others pass', async t => {
  const ping = { jsonrpc: '2.0', id: 1, method: 'ping' }
  t.equal((await send({}, [ping, { ...ping, id: 2 }], pinger.token)).status, 200)
  const mixed = await send({ Accept: '*/*' }, [ping, call('add')], pinger.token)
  t.match([mixed.status, await mixed.json()], [403, { code: 'policy_denied' }])
  const denied = await send({ Accept: '*/*' }, [ping, call('drop')])
  t.equal(denied.status, 403)
  t.equal(origin.seen.length, 1)
})

t.test('a batch with a message that is not JSON-RPC 2.0 is unreadable, not without tools', async t => {
  for (const body of [
    [call('drop'), 1],
    { ...call('drop'), jsonrpc: '2' },
    { method: 'tools/call', params: { name: 'drop' } },
  ]) {
    t.equal((await send({ Accept: '*/*' }, body)).status, 403, JSON.stringify(body))
  }
  t.equal((await send({}, { method: 'card', amount: 3 })).status, 200)
})
