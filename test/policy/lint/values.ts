import t from 'tap'
import { lintPolicy } from '../../../src/policy/lint/lint.ts'
import { policyOf } from '../../fixtures/rulebook.ts'

type Case = readonly [field: string, operator: string, value: unknown]

/** Codes and texts of the warnings about one condition of a rule. */
function warningsOf([field, operator, value]: Case, effect = 'Deny', wrap = (condition: object): object => condition) {
  const conditions = [wrap({ field, operator, value })]
  const policy = policyOf({ name: 'p', rules: [{ name: 'r', effect, conditions }] })
  return lintPolicy(policy).warnings.map(({ code, message }) => `${code} ${message}`)
}

t.test('a value that no request can have is named, with what to write', async t => {
  const impossible: readonly (readonly [...Case, RegExp])[] = [
    ['input.path', 'eq', 'v1/items', /a path begins with \//],
    ['input.path', 'startsWith', 'v1', /a path begins with \//],
    ['input.path', 'in', ['/a', 'b'], /no request has "b"/],
    ['input.rawPath', 'like', 'v1/*', /a path begins with \//],
    ['input.url', 'startsWith', 'api.example.com', /http:\/\/ or https/],
    ['input.url', 'eq', '/v1', /http:\/\/ or https/],
    ['input.origin', 'startsWith', 'api.', /http:\/\/ or https/],
    ['input.host', 'startsWith', 'https://a', /no scheme, port or path/],
    ['input.scheme', 'eq', 'ftp', /http or https/],
    ['input.queryString', 'startsWith', '?a=1', /behind the question mark/],
    ['input.contentType', 'eq', 'application/json; charset=utf-8', /without parameters/],
    ['input.clientIp', 'eq', '10.0.0.0/8', /ipIn/],
    ['agent.status', 'eq', 'Inactive', /Active/],
    ['agent.id', 'in', ['support'], /UUID/],
    ['time.date', 'eq', '5.1.2026', /2026-01-05/],
    ['time.clock', 'eq', '9:00', /09:00/],
    ['input.body.n.@type', 'in', ['int'], /string, number/],
    ['input.port', 'gt', 65_535, /from 1 to 65535/],
    ['agent.trustScore', 'gt', 1, /from 0 to 1/],
    ['risk.score', 'gte', 2, /from 0 to 1/],
    ['time.hour', 'between', [24, 30], /from 0 to 23/],
    ['input.body.items.@size', 'lt', 0, /at least 0/],
  ]
  for (const [field, operator, value, expected] of impossible) {
    const found = warningsOf([field, operator, value])
    t.match(found[0], /^W_IMPOSSIBLE_VALUE .*: the condition never holds$/, `${field} ${value}`)
    t.match(found[0], expected, field)
  }
})

t.test('a negation of an impossible value holds for every request', async t => {
  t.match(warningsOf(['input.path', 'ne', 'v1'])[0], /^W_IMPOSSIBLE_VALUE .* holds for every request$/)
  const not = (condition: object) => ({ not: condition })
  t.match(warningsOf(['input.path', 'eq', 'v1'], 'Deny', not)[0], /holds for every request$/)
})

t.test('values that requests can have are not named', async t => {
  const possible: readonly Case[] = [
    ['input.path', 'endsWith', 'v1'],
    ['input.path', 'contains', 'v1'],
    ['input.path', 'like', '*/v1'],
    ['input.url', 'startsWith', 'https:'],
    ['input.url', 'contains', '/v1'],
    ['input.scheme', 'eq', 'HTTPS'],
    ['input.host', 'endsWith', '.example'],
    ['input.host', 'startsWith', '[2001:db8:'],
    ['input.port', 'eq', 65_535],
    ['agent.trustScore', 'gte', 1],
    ['risk.score', 'gt', 0.9],
    ['input.queryString', 'contains', '?'],
    ['input.headers.x', 'eq', 'a;b'],
    ['input.body.path', 'eq', 'v1'],
    ['input.body.n.@type', 'eq', 'array'],
    ['agent.id', 'eq', '00000000-0000-4000-8000-000000000000'],
    ['time.clock', 'between', '22:00-06:00'],
  ]
  for (const one of possible) t.strictSame(warningsOf(one), [], one.join(' '))
})

t.test('a pattern in an operator that compares text is named, with the operator for patterns', async t => {
  const patterns: readonly (readonly [...Case, string])[] = [
    ['input.path', 'eq', '/v1/refunds/*', 'pathMatches'],
    ['input.path', 'ne', '/v1/users/{id}', 'pathMatches'],
    ['input.path', 'startsWith', '/v1/*/x', 'pathMatches'],
    ['input.path', 'in', ['/a', '/b/**'], 'pathMatches'],
    ['input.rawPath', 'eq', '/v1/*', 'like'],
    ['input.host', 'endsWith', '*.example.com', 'hostMatches'],
    ['mcp.tool', 'in', ['get_*'], 'like'],
    ['llm.model', 'eq', 'gpt-4*', 'like'],
  ]
  for (const [field, operator, value, better] of patterns) {
    const [found = ''] = warningsOf([field, operator, value])
    t.match(found, /^W_PATTERN_TEXT /, `${field} ${value}`)
    t.match(found, `use ${better}`, field)
  }
  for (const one of [
    ['input.path', 'pathMatches', '/v1/{id}'],
    ['input.headers.accept', 'eq', '*/*'],
    ['input.body.text', 'eq', 'a*'],
    ['mcp.tool', 'like', 'get_*'],
    ['input.path', 'matches', '^/v1/.*$'],
  ] as const) {
    t.strictSame(warningsOf(one), [], one.join(' '))
  }
})

t.test('a search for text in an object is named', async t => {
  for (const one of [
    ['input.body', 'detects', 'secret'],
    ['input.body', 'contains', 'DROP TABLE'],
    ['mcp.arguments', 'matches', 'rm -rf'],
    ['agent.claims', 'like', '*admin*'],
  ] as const) {
    t.match(warningsOf(one).at(-1), /^W_TEXT_OF_OBJECT .* is an object/, one.join(' '))
  }
  t.strictSame(warningsOf(['input.bodyText', 'detects', 'secret']), [])
  t.strictSame(warningsOf(['input.body.text', 'contains', 'x']), [])
  t.strictSame(warningsOf(['input.body', 'exists', true]), [])
})

t.test('a field below which another rule names a member is an object', async t => {
  const rules = [
    { name: 'a', effect: 'Deny', conditions: [{ field: 'input.body.order.amount', operator: 'gt', value: 1 }] },
    { name: 'b', effect: 'Deny', conditions: [{ field: 'input.body.order', operator: 'contains', value: 'x' }] },
    { name: 'c', effect: 'Deny', conditions: [{ field: 'input.body.note.@size', operator: 'gt', value: 1 }] },
    { name: 'd', effect: 'Deny', conditions: [{ field: 'input.body.note', operator: 'contains', value: 'x' }] },
  ]
  const found = lintPolicy(policyOf({ name: 'p', rules })).warnings
  t.strictSame(
    found.map(({ code, rule }) => `${code} ${rule}`),
    ['W_TEXT_OF_OBJECT b'],
  )
})

t.test('an Allow rule that also matches what goes on behind its value is named, with such a value', async t => {
  const open: readonly (readonly [...Case, string])[] = [
    ['input.path', 'pathMatches', '/v1/refund*', '/v1/refund-x'],
    ['input.path', 'pathMatches', ['/a', '/v1/refund*/{id}'], '/v1/refund-x/x'],
    ['input.path', 'startsWith', '/v1/refund', '/v1/refund-x'],
    ['input.path', 'like', '/v1/refund*', '/v1/refund-x'],
    ['input.path', 'matches', '^/v1/refund', '/v1/refund-x'],
    ['input.rawPath', 'startsWith', '/v1', '/v1-x'],
    ['input.host', 'endsWith', 'example.com', 'notexample.com'],
    ['input.host', 'like', '*example.com', 'notexample.com'],
    ['input.host', 'startsWith', 'api.', 'api..evil.example'],
    ['input.host', 'contains', 'example.com', 'example.com.evil.example'],
    ['input.host', 'matches', 'api\\.example\\.com', 'api.example.com.evil.example'],
    ['input.origin', 'startsWith', 'https://api.example.com', 'https://api.example.com.evil.example'],
    ['input.url', 'startsWith', 'https://api.example.com', 'https://api.example.com.evil.example'],
    ['input.url', 'like', 'https://api.example.com*', 'https://api.example.com.evil.example'],
    ['input.url', 'contains', 'api.example.com', 'https://evil.example/?api.example.com'],
  ]
  for (const [field, operator, value, sibling] of open) {
    const found = warningsOf([field, operator, value], 'Allow').find(text => text.startsWith('W_OPEN_END')) ?? ''
    t.ok(found.includes(`also matches ${sibling}`), `${field} ${operator} ${value}: ${found}`)
    t.match(found, /: use ./, field)
    t.notMatch(warningsOf([field, operator, value]).join(), 'W_OPEN_END', 'a Deny rule may match more')
    const not = (condition: object) => ({ not: condition })
    t.notMatch(warningsOf([field, operator, value], 'Allow', not).join(), 'W_OPEN_END')
  }
})

t.test('an Allow rule on whole segments and whole hosts is not named', async t => {
  for (const one of [
    ['input.path', 'pathMatches', '/v1/refunds/**'],
    ['input.path', 'pathMatches', '/v1/*/x'],
    ['input.path', 'pathMatches', '/v1/report-*'],
    ['input.path', 'startsWith', '/v1/'],
    ['input.path', 'matches', '^/v1/refund$'],
    ['input.path', 'matches', '^/v[12]/'],
    ['input.url', 'startsWith', 'https://api.example.com/'],
    ['input.host', 'endsWith', '.example.com'],
    ['input.host', 'hostMatches', '*.example.com'],
    ['input.host', 'matches', '^api\\.example\\.com$'],
  ] as const) {
    t.notMatch(warningsOf(one, 'Allow').join(), 'W_OPEN_END', one.join(' '))
  }
})
