import t from 'tap'
import { lintPolicy } from '../../../src/policy/lint/lint.ts'
import { policyOf } from '../../fixtures/rulebook.ts'

type Draft = Record<string, unknown>

let number = 0
function rule(conditions: readonly Draft[], rest: Draft = {}): Draft {
  return { name: `r${number++}`, effect: 'Deny', conditions, ...rest }
}

function is(field: string, operator: string, value: unknown, rest: Draft = {}): Draft {
  return { field, operator, value, ...rest }
}

/** Codes of all warnings, with the place. */
function lint(rules: readonly Draft[], rest: Draft = {}): string[] {
  const { warnings } = lintPolicy(policyOf({ name: 'p', rules, ...rest }))
  return warnings.map(({ code, path }) => `${code} ${path}`)
}

const host = is('input.host', 'eq', 'a.example')

t.test('a rule that an earlier one covers is never reached', async t => {
  const covered: [Draft, Draft][] = [
    [is('input.path', 'startsWith', '/v1/'), is('input.path', 'eq', '/v1/items')],
    [is('input.path', 'pathMatches', '/v1/**'), is('input.path', 'pathMatches', '/v1/items/*')],
    [is('input.path', 'pathMatches', '/v1/**'), is('input.path', 'startsWith', '/v1/')],
    [is('input.path', 'startsWith', '/v1'), is('input.path', 'pathMatches', '/v1/items/**')],
    [is('input.path', 'pathMatches', '/v1/{id:int}'), is('input.path', 'eq', '/v1/7')],
    [is('input.path', 'pathMatches', '/v1/{id:int}'), is('input.path', 'pathMatches', ['/v1/7', '/v1/{other:int}'])],
    [is('input.path', 'pathMatches', '/v1/{id}/x'), is('input.path', 'pathMatches', '/v1/{id:uuid}/x')],
    [is('input.path', 'pathMatches', '/v1/{id:int}/**'), is('input.path', 'pathMatches', '/v1/7/**')],
    [is('input.method', 'in', 'GET,POST'), is('input.method', 'eq', 'get')],
    [is('input.method', 'ne', 'DELETE'), is('input.method', 'in', 'GET,POST')],
    [is('input.host', 'hostMatches', '.example'), is('input.host', 'eq', 'b.example')],
    [is('input.host', 'hostMatches', '*.example'), is('input.host', 'hostMatches', '*.a.example')],
    [is('input.body.n', 'gt', 5), is('input.body.n', 'gte', 6)],
    [is('input.body.n', 'lte', 5), is('input.body.n', 'between', '2,5')],
    [is('input.headers.x', 'exists', true), is('input.headers.x', 'startsWith', 'a')],
    [is('input.headers.x', 'ne', 'a'), is('input.headers.x', 'notIn', 'a,b')],
    [is('input.headers.x', 'in', 'a,b'), is('input.headers.x', 'eq', 'a')],
    [is('input.body.list[*].n', 'gt', 5), is('input.body.list[*].n', 'gte', 6)],
    [is('mcp.tool', 'in', 'a,b'), is('mcp.tool', 'eq', 'a')],
    [is('agent.trustScore', 'lt', 0.5), is('agent.trustScore', 'lt', 0.3)],
    [is('input.query.q', 'contains', 'a'), is('input.query.q', 'contains', 'a')],
    [is('input.destinationIp', 'exists', true), is('input.destinationIp', 'ipIn', '10.0.0.0/8')],
    [is('agent.hostSeen', 'eq', true), is('agent.hostSeen', 'eq', true)],
    [is('input.body.a.b', 'exists', true), is('input.body.a.b', 'eq', 1)],
    [is('input.body.list[*]', 'exists', true), is('input.body.list[*]', 'startsWith', 'x')],
    [{ any: [host, is('input.method', 'eq', 'PUT')] }, host],
    [is('input.body.x', 'matches', '^a.c$'), is('input.body.x', 'matches', '^a.c$')],
  ]
  for (const [wide, narrow] of covered) {
    const rules = [rule([wide], { priority: 2 }), rule([host, narrow], { priority: 1, effect: 'Hitl' })]
    t.match(lint(rules).join(), 'W_UNREACHABLE rules[1]', JSON.stringify([wide, narrow]))
  }
})

t.test('only what is proved is called unreachable', async t => {
  const open: [Draft, Draft][] = [
    [is('input.path', 'eq', '/v1/items'), is('input.path', 'startsWith', '/v1/')],
    [is('input.path', 'pathMatches', '/v1/items/*'), is('input.path', 'pathMatches', '/v1/**')],
    [is('input.path', 'pathMatches', '/v1/{id:int}'), is('input.path', 'pathMatches', '/v1/{id}')],
    [is('input.path', 'pathMatches', '/v1/{id:int}'), is('input.path', 'pathMatches', '/v1/{id:uuid}')],
    [is('input.path', 'pathMatches', '/v1/{id:int}'), is('input.path', 'pathMatches', '/v1/{id:int}/x')],
    [is('input.path', 'pathMatches', '/v1/{id}'), is('input.path', 'pathMatches', '/v1/*')],
    [is('input.path', 'pathMatches', '/v1/*/x'), is('input.path', 'pathMatches', '/v1/**')],
    [is('input.path', 'pathMatches', '/v1/**'), is('input.path', 'startsWith', '/v1')],
    [is('input.host', 'hostMatches', '*.a.example'), is('input.host', 'hostMatches', '.a.example')],
    [is('input.host', 'hostMatches', '*.a.example'), is('input.host', 'hostMatches', '*.b.example')],
    [is('input.host', 'hostMatches', '*.a.example'), is('input.host', 'hostMatches', 'a.example')],
    [is('input.body.n', 'gt', 6), is('input.body.n', 'gte', 6)],
    [is('input.body.n', 'gt', 6), is('input.body.n', 'lt', 9)],
    [is('input.headers.x', 'startsWith', 'a'), is('input.headers.x', 'exists', true)],
    [is('input.headers.x', 'eq', 'a'), is('input.headers.x', 'in', 'a,b')],
    [is('input.headers.x', 'eq', 'a', { quantifier: 'all' }), is('input.headers.x', 'eq', 'a')],
  ]
  for (const [narrow, wide] of open) {
    const rules = [rule([narrow], { priority: 2 }), rule([wide], { priority: 1 })]
    t.notMatch(lint(rules).join(), 'W_UNREACHABLE', JSON.stringify([narrow, wide]))
  }
  const allowed = [
    rule([is('input.body.n', 'gt', 5)], { priority: 2, effect: 'Allow' }),
    rule([is('input.body.n', 'gt', 6)], { priority: 1 }),
  ]
  t.notMatch(lint(allowed).join(), 'W_UNREACHABLE', 'an Allow does not cover what cannot be read')
})

t.test('conditions that exclude each other are found', async t => {
  const pairs: [Draft, Draft][] = [
    [is('input.method', 'eq', 'GET'), is('input.method', 'eq', 'POST')],
    [is('input.method', 'in', 'GET,PUT'), is('input.method', 'ne', 'GET')],
    [is('input.path', 'startsWith', '/a/'), is('input.path', 'startsWith', '/b/')],
    [is('input.port', 'gt', 443), is('input.port', 'lte', 443)],
    [is('input.headers.x', 'exists', false), is('input.headers.x', 'contains', 'a')],
    [{ not: host }, host],
  ]
  const expected = [true, false, true, true, true, true]
  for (const [index, pair] of pairs.entries()) {
    t.equal(lint([rule(pair)]).includes('W_CONTRADICTION rules[0]'), expected[index], JSON.stringify(pair))
  }
  const several = [is('input.body.n', 'gt', 5), is('input.body.n', 'lt', 3)]
  t.strictSame(lint([rule(several)]), [], 'a list may hold both')
})

t.test('a tie between different effects is shown when a request meets both', async t => {
  const post = is('input.method', 'eq', 'POST')
  const origin = is('input.origin', 'eq', 'https://a.example')
  t.strictSame(lint([rule([origin], { effect: 'Allow' }), rule([post], { effect: 'Hitl' })]), [
    'W_TIE_CONFLICT rules[0]',
  ])
  t.strictSame(lint([rule([origin], { effect: 'Allow', priority: 1 }), rule([post], { effect: 'Hitl' })]), [])
  t.strictSame(lint([rule([is('input.method', 'eq', 'GET')], { effect: 'Allow' }), rule([post])]), [])
})

t.test('an Allow rule that holds of what is missing is warned of', async t => {
  const negated = is('input.headers.x', 'ne', 'a')
  t.strictSame(lint([rule([negated], { effect: 'Allow' })]), ['W_NEGATED_ALLOW rules[0].conditions[0]'])
  t.strictSame(lint([rule([{ not: is('input.headers.x', 'eq', 'a') }], { effect: 'Allow' })]), [
    'W_NEGATED_ALLOW rules[0].conditions[0].not',
  ])
  const present = is('input.headers.x', 'exists', true)
  t.strictSame(lint([rule([negated, present], { effect: 'Allow' })]), [])
  t.strictSame(
    lint([rule([{ any: [is('input.method', 'eq', 'GET'), { all: [present, negated] }] }], { effect: 'Allow' })]),
    [],
  )
  t.strictSame(lint([rule([is('input.method', 'ne', 'GET')], { effect: 'Allow' })]), [], 'there is always a method')
  t.strictSame(lint([rule([negated])]), [])
})

t.test('an Allow rule that one element of a list satisfies is warned of', async t => {
  const any = is('llm.tools', 'eq', 'search')
  t.strictSame(lint([rule([any], { effect: 'Allow' })]), ['W_ANY_ALLOW rules[0].conditions[0]'])
  t.strictSame(lint([rule([{ ...any, quantifier: 'all' }], { effect: 'Allow' })]), [])
  t.strictSame(lint([rule([any])]), [])
  const session = rule([is('input.bodyInfo.size', 'eq', 0)], { effect: 'Allow' })
  const tool = rule([is('mcp.tool', 'eq', 'search')], { effect: 'Allow' })
  t.strictSame(lint([tool, session]), [], 'the messages of a batch must agree')
  const negated = { not: { ...is('mcp.method', 'eq', 'ping'), quantifier: 'all' } }
  t.strictSame(lint([rule([negated, is('mcp.method', 'exists', true)], { effect: 'Allow' }), session]), [
    'W_ANY_ALLOW rules[0].conditions[0].not',
  ])
})

t.test('an Allow rule that one of several equal fields satisfies is warned of', async t => {
  for (const field of ['input.headers.x-tenant', 'input.query.tenant', 'input.contentType', 'input.pathSegments']) {
    const any = is(field, 'eq', 'a')
    t.strictSame(lint([rule([any], { effect: 'Allow' })]), ['W_ANY_ALLOW rules[0].conditions[0]'], field)
    t.strictSame(lint([rule([{ ...any, quantifier: 'all' }], { effect: 'Allow' })]), [], field)
    t.strictSame(lint([rule([any])]), [], field)
  }
  for (const only of [
    is('input.query.tenant[0]', 'eq', 'a'),
    is('input.headers.x', 'exists', true),
    is('input.headers.accept', 'contains', 'text/event-stream'),
    is('input.pathSegments[0]', 'eq', 'a'),
  ]) {
    t.strictSame(lint([rule([only], { effect: 'Allow' })]), [], JSON.stringify(only))
  }
})

t.test('an Allow rule that a list in a JSON body satisfies by one element is warned of', async t => {
  const allow = { effect: 'Allow' }
  for (const field of ['input.body.amount', 'mcp.arguments.amount']) {
    const session = rule([is('input.bodyInfo.size', 'eq', 0)], allow)
    const any = is(field, 'lte', 100)
    t.strictSame(lint([rule([any], allow), session])[0], 'W_ANY_ALLOW rules[0].conditions[0]', field)
    t.notMatch(lint([rule([{ ...any, quantifier: 'all' }], allow), session]).join(), 'W_ANY_ALLOW', field)
    t.notMatch(lint([rule([any, is(field, 'typeIs', 'number')], allow), session]).join(), 'W_ANY_ALLOW', field)
  }
  const [any, number] = [is('input.body.amount', 'lte', 100), is('input.body.amount', 'typeIs', 'number')]
  const warned = 'W_ANY_ALLOW rules[0].conditions[0]'
  const none = is('input.body.amount', 'notExists', true)
  const either = { any: [none, { all: [number, any] }] }
  t.strictSame(lint([rule([either], allow)]), [], 'beside it in a group')
  t.strictSame(lint([rule([{ any: [number, any] }], allow)]), [`${warned}.any[1]`], 'in its place')
  const inverted = { not: { all: [number, { not: any }] } }
  t.equal(lint([rule([inverted], allow)])[1], `${warned}.not.all[1].not`, 'the other one may fail')
  const list = is('input.body.amount', 'typeIs', ['number', 'array'])
  t.strictSame(lint([rule([any, list], allow)]), [warned], 'a list is allowed')
  t.strictSame(lint([rule([is('input.body.amount', 'lte', 100)])]), [])
  t.strictSame(lint([rule([is('input.body.list.@size', 'lte', 3)], allow)]), [])
})

t.test('rules on the body above rules on the head are named', async t => {
  const body = rule([host, is('input.body.n', 'gt', 5)], { priority: 2, effect: 'Hitl' })
  t.strictSame(lint([body, rule([host], { priority: 1 })]), ['W_BODY_FIRST rules[0]'])
  t.strictSame(lint([body, rule([is('input.host', 'eq', 'b.example')], { priority: 1 })]), [])
  const get = rule([host, is('input.method', 'eq', 'GET'), is('input.body.n', 'gt', 5)], {
    priority: 2,
    effect: 'Hitl',
  })
  t.strictSame(lint([get, rule([host, is('input.method', 'eq', 'POST')], { priority: 1 })]), [], 'other requests')
})

t.test('rules on the body are compared with rules on the head by origin too', async t => {
  const at = (value: unknown) => is('input.origin', Array.isArray(value) ? 'in' : 'eq', value)
  const body = (value: unknown) => rule([at(value), is('input.body.n', 'gt', 5)], { priority: 2, effect: 'Hitl' })
  const head = (value: unknown) => rule([at(value), is('input.path', 'startsWith', '/a/')], { priority: 1 })
  const a = 'https://a.example'
  t.strictSame(lint([body(a), head(a)]), ['W_BODY_FIRST rules[0]'])
  t.strictSame(lint([body(a), rule([host], { priority: 1 })]), ['W_BODY_FIRST rules[0]'])
  t.strictSame(lint([body([a, 'https://b.example']), head('https://B.example:443'), head(a)]), [
    'W_BODY_FIRST rules[0]',
  ])
  t.strictSame(lint([body(a), head(['https://b.example', a])]), ['W_BODY_FIRST rules[0]'])
  t.strictSame(lint([body(a), head(`${a}:8443`)]), [], 'another port')
  t.strictSame(lint([body(`${a}:8443`), body(a), head(a)]), ['W_BODY_FIRST rules[1]'])
})

t.test('a rule for every request, not last, and an open default are named', async t => {
  t.strictSame(lint([rule([]), rule([host])], { default: 'Allow' }), [
    'W_CATCH_ALL default',
    'W_CATCH_ALL rules[0]',
    'W_UNREACHABLE rules[1]',
  ])
  t.strictSame(lint([rule([host], { priority: 1 }), rule([])]), [])
})

t.test('patterns that are plain text are named with the faster operator', async t => {
  const patterns: [string, string][] = [
    ['^/v1/', 'startsWith'],
    ['\\.json$', 'endsWith'],
    ['^exact$', 'eq'],
    ['abc', 'contains'],
  ]
  for (const [pattern, operator] of patterns) {
    const { warnings } = lintPolicy(policyOf({ name: 'p', rules: [rule([is('input.path', 'matches', pattern)])] }))
    const [warning] = warnings
    t.match(warning, { code: 'W_REGEX_LITERAL', message: operator }, pattern)
  }
  t.strictSame(lint([rule([is('input.path', 'matches', '^/v[12]/')])]), [])
})

t.test('a rule whose own request another rule decides otherwise is named', async t => {
  const rules = [
    rule([is('input.path', 'contains', 'min')], { priority: 2 }),
    rule([is('input.path', 'startsWith', '/admin/')], { priority: 1, effect: 'Allow' }),
  ]
  t.strictSame(lint(rules), ['W_WITNESS rules[1]'])
  const exception = rule([is('input.method', 'eq', 'GET')], { priority: 2, effect: 'Allow' })
  t.strictSame(lint([exception, rule([host], { priority: 1 })]), [], 'other methods reach the rule')
  const guard = rule([is('input.host', 'notIn', 'a.example,b.example')], { priority: 2 })
  t.strictSame(
    lint([guard, rule([is('input.method', 'eq', 'GET')], { effect: 'Allow' })]),
    [],
    'hosts of the guard reach it',
  )
})

t.test('a rule that was in shadow for long is named', async t => {
  const policy = policyOf({ name: 'p', rules: [rule([host], { mode: 'shadow' })] })
  const day = 86_400_000
  const { warnings } = lintPolicy(policy, { now: 31 * day, unchangedSince: 0 })
  t.match(warnings, [{ code: 'W_SHADOW_OLD', path: 'rules[0].mode' }])
  t.strictSame(lintPolicy(policy, { now: 29 * day, unchangedSince: 0 }).warnings, [])
  t.strictSame(lintPolicy(policy).warnings, [])
})

t.test('an Allow rule on a host alone also allows plain http and any port', async t => {
  const allow = { effect: 'Allow' }
  t.strictSame(lint([rule([host], allow)]), ['W_ANY_ORIGIN rules[0]'])
  t.strictSame(lint([rule([{ any: [host] }], allow)]), ['W_ANY_ORIGIN rules[0]'])
  t.strictSame(lint([rule([host])]), [])
  t.strictSame(lint([rule([host, is('input.scheme', 'eq', 'https')], allow)]), [])
  t.strictSame(lint([rule([is('input.origin', 'eq', 'https://a.example')], allow)]), [])
})

t.test('an Allow rule must not rest on what an agent says in the header fields of MCP', async t => {
  const allow = { effect: 'Allow' }
  const claims = { ...is('input.headers.Mcp-Name', 'eq', 'add'), quantifier: 'all' }
  t.strictSame(lint([rule([claims], allow)]), ['W_MCP_HEADER rules[0]'])
  t.strictSame(lint([rule([{ any: [{ ...claims, field: 'input.headers.mcp-param-region' }] }], allow)]), [
    'W_MCP_HEADER rules[0]',
  ])
  t.strictSame(lint([rule([claims], { effect: 'Deny' })]), [])
  const session = rule([is('input.bodyInfo.size', 'eq', 0)], { effect: 'Allow' })
  t.strictSame(lint([rule([claims, is('mcp.tool', 'eq', 'add')], allow), session]), [])
})

t.test('a path value that only some readings can have is pointed out', async t => {
  for (const [operator, value] of [
    ['eq', '/a%2fb'],
    ['startsWith', '/a;'],
    ['contains', '//'],
    ['in', '/a,/%61'],
    ['pathMatches', '/x/../**'],
    ['pathMatches', '/a;v=1/**'],
  ] as const) {
    const expected = value.includes('..') ? [] : ['W_ONE_READING rules[0].conditions[0]']
    t.strictSame(lint([rule([is('input.path', operator, value)])]), expected, value)
    t.strictSame(lint([rule([is('input.rawPath', operator === 'pathMatches' ? 'like' : operator, value)])]), [], value)
  }
  t.strictSame(lint([rule([is('input.path', 'eq', '/a%20b')])]), [])
})

t.test('a sign in the path of a Deny or Hitl rule whose escape passes is pointed out', async t => {
  const warning = ['W_ONE_SPELLING rules[0].conditions[0]']
  for (const effect of ['Deny', 'Hitl']) {
    t.strictSame(lint([rule([is('input.path', 'endsWith', ':setIamPolicy')], { effect })]), warning, effect)
  }
  for (const [operator, value] of [
    ['in', '/a,/users/@me'],
    ['contains', '/$batch'],
    ['pathMatches', '/v1/{id:int}:undo'],
  ] as const) {
    t.strictSame(lint([rule([is('input.path', operator, value)])]), warning, value)
  }
  const escaped = is('input.path', 'endsWith', '%3AsetIamPolicy')
  for (const conditions of [
    [{ any: [is('input.path', 'endsWith', ':setIamPolicy'), escaped] }],
    [{ any: [is('input.path', 'endsWith', ':undo'), is('input.path', 'matches', '%3[aA]undo$')] }],
    [{ not: is('input.path', 'endsWith', ':read') }],
    [is('input.path', 'pathMatches', '/v1/{id:int}')],
    [is('input.query.q', 'eq', 'a@b')],
  ]) {
    t.notOk(lint([rule(conditions)]).includes(warning[0]!), JSON.stringify(conditions))
  }
  t.strictSame(lint([rule([is('input.path', 'eq', '/v1/a:read')], { effect: 'Allow' })]), [])
})
