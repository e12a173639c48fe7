import t from 'tap'
import { fieldKinds } from '../../../../src/policy/language/fields/field-table.ts'
import { type Field, parseField } from '../../../../src/policy/language/fields/fields.ts'
import { Zone } from '../../../../src/policy/language/fields/zone.ts'
import type { RequestDescription } from '../../../../src/policy/request/describe.ts'
import { Facts } from '../../../../src/policy/request/facts.ts'
import { noRisk } from '../../../../src/policy/risk/risk.ts'
import { missing, unknown, unreadable } from '../../../../src/policy/values/truth.ts'
import { readField } from '../../../fixtures/read-field.ts'
import { described, truthOf } from '../../../fixtures/rulebook.ts'

/** Paths that a test has read. */
const asked = new Set<string>()

function read(...[path, ...given]: Parameters<typeof readField>): unknown {
  asked.add(path)
  return readField(path, ...given)
}

const full: RequestDescription = {
  request: {
    method: 'post',
    url: 'HTTPS://API.Example.com:8443/a/b%2Fc/?q=1&q=2&a.b=x&%C3%A9=%20+&empty',
    headers: { 'Content-Type': 'Application/JSON; charset=utf-8', 'X-Tag': ['one', 'two'] },
    body: { a: { b: [1, { c: 'x' }] }, 'odd.key': true, list: [{ n: 1 }, {}, { n: 3 }] },
    destinationIp: '10.0.0.7',
    clientIp: '192.0.2.1',
    maxCost: 2.5,
  },
  agent: {
    id: 'id-1',
    name: 'bot',
    ownerId: 'team',
    policyName: 'p',
    trustScore: 0.7,
    ageHours: 5,
    tags: { env: 'prod' },
    claims: { groups: ['a', 'b'], deep: { x: 1 } },
    requestsLastMinute: 3,
    deniedLast10m: 2,
    hitlLast24h: 1,
    toolChangesLast24h: 4,
    bytesToday: 99,
    spendToday: 1.5,
    spendThisMonth: 20,
    tokensToday: 7_000,
    hostSeen: false,
  },
  budgets: { 'agents-daily': { used: 0.15, remaining: 8.5 }, counted: {} },
  time: '2026-07-06T22:30:00Z',
}

const values: Readonly<Record<string, unknown>> = {
  'input.method': 'POST',
  'input.url': 'https://api.example.com:8443/a/b%2Fc/?q=1&q=2&a.b=x&%C3%A9=%20+&empty',
  'input.origin': 'https://api.example.com:8443',
  'input.scheme': 'https',
  'input.host': 'api.example.com',
  'input.port': 8443,
  'input.path': '/a/b%2Fc/',
  'input.rawPath': '/a/b%2Fc/',
  'input.pathSegments': ['a', 'b/c', ''],
  'input.pathSegments[1]': 'b/c',
  'input.pathSegments[-3]': 'a',
  'input.pathSegments[9]': missing,
  'input.pathSegments[*]': { each: ['a', 'b/c', ''] },
  'input.pathSegments.@size': 3,
  'input.queryString': 'q=1&q=2&a.b=x&%C3%A9=%20+&empty',
  'input.query.q': ['1', '2'],
  'input.query.q[0]': '1',
  'input.query["a.b"]': 'x',
  'input.query.é': '  ',
  'input.query.empty': '',
  'input.query.none': missing,
  'input.query.__proto__': missing,
  'input.query.q.@type': 'array',
  'input.headers.x-tag': ['one', 'two'],
  'input.headers.X-TAG[1]': 'two',
  'input.headers.x-none': missing,
  'input.headers.constructor': missing,
  'input.contentType': 'application/json',
  'input.bodyInfo.size': 68,
  'input.bodyInfo.kind': 'json',
  'input.body.a.b[0]': 1,
  'input.body.a.b[-1].c': 'x',
  'input.body["odd.key"]': true,
  'input.body.list[*].n': { each: [1, missing, 3] },
  'input.body.list.@size': 3,
  'input.body.a.@type': 'object',
  'input.body.@keys': ['a', 'odd.key', 'list'],
  'input.body.list.@keys': missing,
  'input.body.list[*].@keys': { each: [['n'], [], ['n']] },
  'agent.claims.deep.@keys': ['x'],
  'input.body.a.@size': 1,
  'input.body.a.b[0].@size': missing,
  'input.body.toString': missing,
  'input.body.a.b.length': missing,
  'input.destinationIp': '10.0.0.7',
  'input.destinationClass': 'private',
  'input.clientIp': '192.0.2.1',
  'agent.id': 'id-1',
  'agent.name': 'bot',
  'agent.ownerId': 'team',
  'agent.status': 'Active',
  'agent.policyName': 'p',
  'agent.ageHours': 5,
  'agent.tags.env': 'prod',
  'agent.tags.none': missing,
  'agent.claims.groups[*]': { each: ['a', 'b'] },
  'agent.claims.deep.x': 1,
  'agent.trustScore': 0.7,
  'agent.requestsLastMinute': 3,
  'agent.deniedLast10m': 2,
  'agent.hitlLast24h': 1,
  'agent.toolChangesLast24h': 4,
  'agent.bytesToday': 99,
  'agent.spendToday': 1.5,
  'agent.spendThisMonth': 20,
  'agent.tokensToday': 7_000,
  'budget.used.agents-daily': 0.15,
  'budget.remaining.agents-daily': 8.5,
  'budget.used.counted': unreadable,
  'budget.used.Agents-Daily': unreadable,
  // Servers read this path in more than one way.
  'llm.costAtMost': unreadable,
  'agent.hostSeen': false,
  'time.now': '2026-07-07T00:30:00+02:00',
  'time.date': '2026-07-07',
  'time.clock': '00:30',
  'time.hour': 0,
  'time.dayOfWeek': 'tue',
}

for (const [path, expected] of Object.entries(values)) {
  t.test(`${path} is read`, async t => {
    t.strictSame(read(path, full), expected)
  })
}

t.test('body fields wait for the body, unless there is none', async t => {
  for (const path of ['input.body.a', 'input.bodyText', 'input.bodyInfo.kind', 'mcp.tool', 'llm.model']) {
    t.equal(read(path, full, 'head'), unknown, path)
    const without = { ...full, request: { ...full.request, body: undefined } }
    t.equal(read(path, without, 'head'), path.endsWith('kind') ? 'none' : missing, path)
  }
  t.equal(read('input.bodyInfo.size', full, 'head'), 68, 'announced')
})

t.test('a body of unannounced length has its size when it is there', async t => {
  const { head, body } = described(full)
  const chunked = new Facts({ ...head, contentLength: -1 }, noRisk)
  const size = (parseField('input.bodyInfo.size') as Field).read
  t.equal(size(chunked, new Zone('UTC')), unknown)
  t.equal(size(chunked.withBody(body, noRisk), new Zone('UTC')), 68)
  t.equal(size(chunked.withBody({ ...body, complete: false }, noRisk), new Zone('UTC')), unreadable)
})

t.test('what the caller does not send cannot be evaluated, so that a Deny on it applies', async t => {
  const { head } = described({ request: { url: 'https://a.example/' } })
  const facts = new Facts({ ...head, activity: undefined, destination: undefined }, noRisk)
  for (const path of ['input.destinationIp', 'input.destinationClass', 'agent.hostSeen', 'agent.bytesToday']) {
    t.equal((parseField(path) as Field).read(facts, new Zone('UTC')), unreadable, path)
  }
})

t.test(
  'the cost of a call is missing where there is no call of a model, and unreadable where it is not known',
  async t => {
    const given = { request: { url: 'https://a.example/', body: {}, method: 'POST' } }
    t.equal(read('llm.costAtMost', given), unreadable, 'nobody has said it')
    t.equal(read('llm.costAtMost', { request: { url: 'https://a.example/' } }), missing)
    const known = { request: { ...given.request, maxCost: 2.5 } }
    t.equal(read('llm.costAtMost', known), 2.5)
    t.equal(read('llm.costAtMost', known, 'head'), unknown)
    t.equal(read('llm.costAtMost', { request: { ...known.request, bodyLimit: 1 } }), unreadable, 'a part is held')
    const { head } = described({ request: { url: 'https://a.example/' } })
    const facts = new Facts({ ...head, spend: undefined }, noRisk)
    for (const path of ['agent.spendToday', 'budget.used.daily']) {
      t.equal((parseField(path) as Field).read(facts, new Zone('UTC')), unreadable, path)
    }
  },
)

t.test('method and host are compared in the form that requests carry', async t => {
  const given = { request: { method: 'GET', url: 'https://xn--mller-kva.example/' } }
  t.equal(truthOf({ field: 'input.method', operator: 'in', value: 'get,head' }, given), 'T')
  t.equal(truthOf({ field: 'input.host', operator: 'eq', value: 'MÜLLER.example.' }, given), 'T')
  t.equal(truthOf({ field: 'input.host', operator: 'hostMatches', value: '*.EXAMPLE' }, given), 'T')
  t.equal(truthOf({ field: 'input.host', operator: 'startsWith', value: 'XN--' }, given), 'T')
  t.equal(truthOf({ field: 'input.method', operator: 'matches', value: '^(get|put)$' }, given), 'T')
  const six = { request: { url: 'https://[2001:db8::1]/' } }
  t.equal(truthOf({ field: 'input.host', operator: 'eq', value: '2001:DB8::1' }, six), 'T')
  const usual = { request: { url: 'https://a.example:443/x?y' } }
  t.equal(truthOf({ field: 'input.origin', operator: 'eq', value: 'HTTPS://A.example:443' }, usual), 'T')
  t.equal(
    truthOf({ field: 'input.origin', operator: 'in', value: 'http://a.example,https://a.example:444' }, usual),
    'F',
  )
})

const call = (name: string, args: object = {}) => ({
  ...{ jsonrpc: '2.0', id: 1, method: 'tools/call' },
  params: { name, arguments: args },
})

t.test('mcp.* reads one message or a batch', async t => {
  const of = (path: string, body: unknown) => read(path, { request: { url: 'https://a.example/', body } })
  t.equal(of('mcp.method', call('search')), 'tools/call')
  t.equal(of('mcp.tool', call('search')), 'search')
  t.equal(of('mcp.arguments.q', call('search', { q: 'x' })), 'x')
  t.equal(of('mcp.batchSize', call('search')), 1)
  const batch = [call('search', { q: ['x', 'y'] }), { jsonrpc: '2.0', method: 'ping' }]
  t.strictSame(of('mcp.method', batch), { each: ['tools/call', 'ping'] })
  t.strictSame(of('mcp.tool', batch), { each: ['search', missing] })
  t.strictSame(of('mcp.arguments.q[*]', batch), { each: ['x', 'y', missing] })
  t.equal(of('mcp.batchSize', batch), 2)
})

t.test('mcp.resource and mcp.prompt are what the method names, or a completion refers to', async t => {
  const of = (path: string, method: string, params: object) =>
    read(path, { request: { url: 'https://a.example/', body: { jsonrpc: '2.0', id: 1, method, params } } })
  for (const method of ['resources/read', 'resources/subscribe', 'resources/unsubscribe']) {
    t.equal(of('mcp.resource', method, { uri: 'file:///a', name: 'b' }), 'file:///a')
  }
  t.equal(of('mcp.prompt', 'prompts/get', { name: 'hi', uri: 'x' }), 'hi')
  t.equal(of('mcp.resource', 'completion/complete', { ref: { type: 'ref/resource', uri: 'a' } }), 'a')
  t.equal(of('mcp.prompt', 'completion/complete', { ref: { type: 'ref/prompt', name: 'a' } }), 'a')
  t.equal(of('mcp.prompt', 'completion/complete', { ref: { type: 'ref/resource', name: 'a' } }), missing)
  t.equal(of('mcp.resource', 'tools/call', { uri: 'a' }), missing)
})

t.test('mcp.* is missing in other bodies, and unreadable where a server may take one for a message', async t => {
  const of = (body: unknown, headers = {}) =>
    read('mcp.method', { request: { url: 'https://a.example/', body, headers } })
  for (const body of [{ method: 'ping' }, [], 'null', [1]]) {
    t.equal(of(body, { 'content-type': 'application/json' }), missing, JSON.stringify(body))
  }
  const { jsonrpc: _, ...unmarked } = call('a')
  for (const body of [[call('a'), { method: 'ping' }], { ...call('a'), jsonrpc: 2 }, unmarked, [1, unmarked]]) {
    t.equal(of(body, { 'content-type': 'application/json' }), unreadable, JSON.stringify(body))
  }
  t.equal(of('jsonrpc=2.0&method=ping', { 'content-type': 'application/x-www-form-urlencoded' }), missing)
  t.equal(of('{}', { 'content-type': 'text/plain' }), unreadable)
  t.equal(
    read('mcp.tool', { request: { url: 'https://a.example/', body: { ...call('x'), method: 'prompts/get' } } }),
    missing,
  )
})

t.test('mcp.* is unreadable where a server that ignores letter case reads another message', async t => {
  const call = { jsonrpc: '2.0', method: 'tools/call', params: { name: 'a', arguments: { to: 'b' } } }
  const read = (path: string, body: unknown) => readField(path, { request: { url: 'https://a.example/', body } })
  const all = ['mcp.method', 'mcp.tool', 'mcp.arguments', 'mcp.resource', 'mcp.prompt']
  for (const path of all) {
    t.equal(read(path, { ...call, Method: 'tools/call' }), unreadable, path)
    t.equal(read(path, { ...call, JsonRpc: '2.0' }), unreadable, path)
    t.equal(read(path, { Method: 'tools/call', params: {} }), unreadable, path)
  }
  for (const path of ['mcp.tool', 'mcp.arguments', 'mcp.arguments.to']) {
    t.equal(read(path, { ...call, Params: { name: 'c' } }), unreadable, path)
  }
  t.equal(read('mcp.tool', { ...call, params: { name: 'a', Name: 'c' } }), unreadable)
  t.equal(read('mcp.arguments.to', { ...call, params: { name: 'a', arguments: { To: 'c' } } }), unreadable)
  t.equal(read('mcp.tool', { ...call, params: { name: 'a', arguments: { Name: 'c' } } }), 'a', 'elsewhere')
  t.equal(read('mcp.tool', { Method: 'GET' }), missing)
})

t.test('a repeated Content-Type gives all its types, and the body is read by its bytes alone', async t => {
  const headers = { 'content-type': ['application/json', 'Text/Plain; x=y'] }
  const given = { request: { url: 'https://a.example/', headers, body: '{}' } }
  t.strictSame(read('input.contentType', given), ['application/json', 'text/plain'])
  t.equal(read('input.bodyInfo.kind', given), 'text')
  t.equal(read('input.contentType', { request: { url: 'https://a.example/' } }), missing)
})

t.test('a path or segment with broken escapes stays as it is', async t => {
  t.strictSame(read('input.pathSegments', { request: { url: 'https://a.example/a%zz/%C3%A9' } }), ['a%zz', 'é'])
  t.strictSame(read('input.pathSegments', { request: { url: 'https://a.example/' } }), [])
})

t.test('every field but the risk was read by a test above', async t => {
  const isRead = (name: string) => asked.has(name) || [...asked].some(path => path.startsWith(`${name}.`))
  const unread = [...fieldKinds.keys()].filter(name => !isRead(name))
  // The others have files of their own.
  const elsewhere = /^(?:llm|graphql)\./
  t.strictSame(
    unread.filter(name => !elsewhere.test(name)),
    ['risk.score'],
  )
})
