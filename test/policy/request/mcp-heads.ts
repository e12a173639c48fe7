/** The header fields of MCP requests: what they claim, and that no decision on claims differs from that on the body.T63. */
import fc from 'fast-check'
import t from 'tap'
import { decideHead } from '../../../src/policy/evaluation/decide.ts'
import type { RequestDescription } from '../../../src/policy/request/describe.ts'
import { mcpMismatch, readMcpHeads } from '../../../src/policy/request/mcp-heads.ts'
import { decideBody } from '../../fixtures/decide.ts'
import { described, rulebookOf } from '../../fixtures/rulebook.ts'

const message = (method: string, params: object = {}) => ({ jsonrpc: '2.0', id: 1, method, params })
const differs = (rawHeaders: readonly string[], body: unknown) => {
  const heads = readMcpHeads({ method: 'POST', hasBody: true, rawHeaders })
  return heads === undefined ? 'no heads' : mcpMismatch(heads, body)
}
const named = (name: string, method = 'tools/call') => ['mcp-method', method, 'MCP-Name', name]
const encoded = (text: string) => `=?base64?${Buffer.from(text).toString('base64')}?=`

t.test('heads agree with the body that they describe', async t => {
  t.equal(differs(['Mcp-Method', 'ping'], message('ping')), undefined)
  t.equal(differs(named('add'), message('tools/call', { name: 'add' })), undefined)
  t.equal(differs(named('file:///a', 'resources/read'), message('resources/read', { uri: 'file:///a' })), undefined)
  t.equal(differs(named('hi', 'prompts/get'), message('prompts/get', { name: 'hi' })), undefined)
  for (const name of ['Hello, 世界', ' padded ', 'line1\nline2', '=?base64?literal?=']) {
    t.equal(differs(named(encoded(name)), message('tools/call', { name })), undefined, name)
  }
  t.equal(differs(named('task', 'tasks/get'), message('tasks/get', { taskId: 'task' })), undefined)
  t.equal(differs(['MCP-Protocol-Version', '2025-11-25', 'Accept', '*/*'], undefined), 'no heads')
})

t.test('heads of a request that carries no message say nothing', async t => {
  const rawHeaders = named('drop')
  t.equal(readMcpHeads({ method: 'GET', hasBody: false, rawHeaders }), undefined)
  t.match(readMcpHeads({ method: 'GET', hasBody: true, rawHeaders }), { name: 'drop' })
  t.match(readMcpHeads({ method: 'POST', hasBody: false, rawHeaders }), { name: 'drop' })
})

t.test('heads that say anything else differ from the body', async t => {
  const call = message('tools/call', { name: 'add' })
  const cases: readonly [readonly string[], unknown][] = [
    [['Mcp-Method', 'ping'], call],
    [['Mcp-Method', 'Tools/Call'], call],
    [named('drop'), call],
    [named(encoded('drop')), call],
    [named('add'), message('tools/call')],
    [['Mcp-Name', 'drop'], call],
    [named('safe', 'resources/read'), message('resources/read', { name: 'safe', uri: 'file:///etc/passwd' })],
    [named('safe', 'prompts/get'), message('prompts/get', { name: 'other', uri: 'safe' })],
    [named('add'), { ...call, Method: 'tools/call' }],
    [['Mcp-Name', 'add'], { ...call, METHOD: 'resources/read' }],
    [named('add'), { ...call, Params: { name: 'drop' } }],
    [named('add'), message('tools/call', { name: 'add', Name: 'drop' })],
    [['Mcp-Method', 'tools/call'], [call]],
    [['Mcp-Method', 'tools/call'], { ...call, jsonrpc: '1.0' }],
    [['Mcp-Method', 'tools/call'], 'text'],
    [['Mcp-Method', 'tools/call'], undefined],
    [['Mcp-Method', 'tools/call', 'mcp-method', 'tools/call'], call],
    [[...named('add'), 'Mcp-Name', 'add'], call],
    [named('=?base64?!!!?='), call],
    [named('=?base64?/w==?='), call],
    [
      ['Mcp-Method', 'tools/call', 'MCP-Protocol-Version', '2026-07-28'],
      message('tools/call', { name: 'add', _meta: { 'io.modelcontextprotocol/protocolVersion': '2025-11-25' } }),
    ],
  ]
  for (const [heads, body] of cases) t.type(differs(heads, body), 'string', JSON.stringify([heads, body]))
})

const tool = (value: string) => ({ field: 'mcp.tool', operator: 'eq', value })
const deniesDrop = { name: 'no-drop', effect: 'Deny', conditions: [tool('drop')] }
const post = (headers: Record<string, string>, body: unknown): RequestDescription => ({
  request: { method: 'POST', url: 'https://mcp.example.com/mcp', headers, body },
  risk: 0,
})

t.test('a refusal needs the head alone; everything else waits for a body that agrees', async t => {
  const rulebook = rulebookOf({ name: 'p', default: 'Allow', rules: [deniesDrop] })
  const drop = described(
    post({ 'Mcp-Method': 'tools/call', 'Mcp-Name': 'drop' }, message('tools/call', { name: 'drop' })),
  )
  t.match(decideHead(rulebook, drop.head), { decision: 'Deny', rule: 'no-drop', phase: 'head' })
  const add = described(post({ 'Mcp-Method': 'tools/call', 'Mcp-Name': 'add' }, message('tools/call', { name: 'add' })))
  const waits = decideHead(rulebook, add.head)
  t.match(waits, { need: 'body' })
  if (!('need' in waits)) return
  t.match(decideBody(rulebook, add.head, waits, add.body), { decision: 'Allow', phase: 'body' })
  t.match(decideBody(rulebook, add.head, waits, drop.body), {
    ...{ decision: 'Deny', source: 'mcp-mismatch', rule: null, phase: 'body' },
    ...{ reason: 'Mcp-Name does not match the body.', publicReason: 'Mcp-Name does not match the body.' },
  })
})

t.test('heads without a body, or malformed ones, are refused at once', async t => {
  const rulebook = rulebookOf({ name: 'p', default: 'Allow', rules: [] })
  for (const headers of [{ 'Mcp-Method': 'ping' }, { 'Mcp-Method': 'tools/call', 'Mcp-Name': '=?base64?-?=' }]) {
    const { head } = described({ ...post(headers, undefined), phase: 'head' })
    t.match(decideHead(rulebook, head), { decision: 'Deny', source: 'mcp-mismatch', phase: 'head' })
  }
})

const names = ['add', 'drop', 'file:///a', 'ünï']
const methods = ['tools/call', 'resources/read', 'prompts/get', 'ping', 'completion/complete']
const condition = fc.record({
  field: fc.constantFrom('mcp.method', 'mcp.tool', 'mcp.resource', 'mcp.prompt', 'mcp.arguments.a', 'mcp.batchSize'),
  operator: fc.constantFrom('eq', 'ne', 'startsWith', 'exists'),
  value: fc.constantFrom(...names, ...methods, '1', 'true'),
})
const usable = condition.filter(({ field, operator, value }) => {
  if (operator === 'exists') return value === 'true'
  return field !== 'mcp.batchSize' || (operator !== 'startsWith' && value === '1')
})
const rules = fc.array(
  fc.record({
    effect: fc.constantFrom('Allow', 'Deny', 'Hitl'),
    conditions: fc.array(usable, { minLength: 1, maxLength: 3 }),
  }),
  { maxLength: 4 },
)

t.test('heads that agree change no decision, and heads that do not are refused', async t => {
  const request = fc.record({
    method: fc.constantFrom(...methods),
    name: fc.constantFrom(...names),
    uri: fc.constantFrom(...names),
    claimedMethod: fc.constantFrom(...methods),
    claimedName: fc.option(fc.constantFrom(...names), { nil: undefined }),
    fallback: fc.constantFrom('Allow', 'Deny', 'Hitl'),
    rules,
  })
  fc.assert(
    fc.property(request, ({ method, name, uri, claimedMethod, claimedName, fallback, rules }) => {
      const document = { name: 'p', default: fallback, rules: rules.map((rule, at) => ({ name: `r${at}`, ...rule })) }
      const rulebook = rulebookOf(document)
      const body = message(method, { name, uri, arguments: { a: name } })
      const heads: Record<string, string> = { 'Mcp-Method': claimedMethod }
      if (claimedName !== undefined) heads['Mcp-Name'] = encoded(claimedName)
      const plain = described(post({}, body))
      const claiming = described(post(heads, body))
      const truth = decideBody(rulebook, plain.head, undefined, plain.body)
      const first = decideHead(rulebook, claiming.head)
      const found = 'need' in first ? decideBody(rulebook, claiming.head, first, claiming.body) : first
      const agrees = differs(Object.entries(heads).flat(), body) === undefined
      return agrees ? found.decision === truth.decision : found.decision === 'Deny'
    }),
    { numRuns: 3_000 },
  )
  t.pass('holds')
})
