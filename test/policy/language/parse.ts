import t from 'tap'
import { compilePolicySync } from '../../../src/policy/evaluation/compile.ts'
import { formatPolicy } from '../../../src/policy/language/format.ts'
import type { Policy } from '../../../src/policy/language/model.ts'
import { parsePolicy, parsePolicyInTurns } from '../../../src/policy/language/parse.ts'
import { policyOf } from '../../fixtures/rulebook.ts'
import { turnsDuring } from '../../fixtures/turns.ts'

const eq = { field: 'input.method', operator: 'eq', value: 'POST' }

function problems(document: unknown): string[] {
  const parsed = parsePolicy(document)
  return 'problems' in parsed ? parsed.problems.map(({ code, path }) => `${code} ${path}`) : []
}

function messages(document: unknown): string {
  const parsed = parsePolicy(document)
  return 'problems' in parsed ? parsed.problems.map(({ message }) => message).join('\n') : ''
}

function withRule(rule: object): unknown {
  return { name: 'p', rules: [{ name: 'r', effect: 'Deny', conditions: [], ...rule }] }
}

function withCondition(condition: unknown): unknown {
  return withRule({ conditions: [condition] })
}

t.test('a policy of the shape of the specification is taken as it is', async t => {
  const document = {
    name: 'support',
    description: 'Ticket agent',
    owner: 'security',
    default: 'hitl',
    rules: [{ name: 'r', priority: 10, effect: 'Deny', conditions: [eq] }],
  }
  t.strictSame(formatPolicy(policyOf(document)), { ...document, default: 'Hitl' })
})

t.test('what is left out has its standard value', async t => {
  const policy = policyOf({ name: 'p', rules: [{ name: 'r', effect: 'allow', conditions: [] }] })
  t.match(policy, {
    description: '',
    owner: '',
    default: 'Deny',
    timezone: 'UTC',
    onUnreadable: 'failSafe',
    shadowOf: null,
  })
  t.match(policy.rules[0], {
    priority: 0,
    effect: 'Allow',
    mode: 'enforce',
    riskExempt: false,
    budget: '',
    credential: '',
    reason: '',
    approvals: 1,
  })
  t.strictSame(policyOf({ name: 'p' }).rules, [])
})

t.test('the detail of the API can be sent back, capitals and all', async t => {
  const policy = policyOf({
    Name: 'p',
    Default: 'Deny',
    Rules: [],
    CreatedOn: '2026-01-01',
    version: 'x',
    ruleCount: 0,
  })
  t.equal(policy.name, 'p')
})

t.test('values written as numbers, booleans and lists come back as text, and read the same', async t => {
  const conditions = [
    { field: 'input.body.n', operator: '==', value: 10 },
    { field: 'input.body.b', operator: 'neq', value: true },
    { field: 'input.method', operator: 'IN', value: ['GET', 'HEAD'] },
    { field: 'input.body.x', operator: 'exists' },
    { any: [{ not: { ...eq, ignoreCase: true } }, { all: [{ ...eq, quantifier: 'all' }] }] },
    { not: [eq, eq] },
  ]
  const policy = policyOf({ ...(withRule({ conditions }) as object), timezone: 'Europe/Berlin', onUnreadable: 'match' })
  const wire = formatPolicy(policy)
  t.strictSame(wire.rules[0]!.conditions, [
    { field: 'input.body.n', operator: 'eq', value: '10', valueType: 'number' },
    { field: 'input.body.b', operator: 'ne', value: 'true', valueType: 'boolean' },
    { field: 'input.method', operator: 'in', value: '["GET","HEAD"]' },
    { field: 'input.body.x', operator: 'exists', value: 'true' },
    { any: [{ not: { ...eq, ignoreCase: true } }, { all: [{ ...eq, quantifier: 'all' }] }] },
    { not: { all: [eq, eq] } },
  ])
  t.strictSame(policyOf(JSON.parse(JSON.stringify(wire))), policy)
})

t.test('operators that compare one value refuse a list, which [a-z] without quotes is in YAML', async t => {
  const list = ['a-z']
  for (const operator of ['matches', 'notMatches', 'like', 'contains', 'startsWith', 'notEndsWith', 'eq', 'gt']) {
    const document = withCondition({ field: 'input.body.x', operator, value: list })
    t.strictSame(problems(document), ['E_VALUE rules[0].conditions[0]'], operator)
    t.match(messages(document), operator === 'eq' ? 'use in for a list' : 'put text such as [a-z] in quotes', operator)
  }
  for (const operator of ['matches', 'like', 'contains']) {
    t.strictSame(problems(withCondition({ field: 'input.body.x', operator, value: '["a-z"]' })), [], 'the same as text')
  }
  t.match(messages(withCondition({ ...eq, value: { id: null } })), 'put text with { or [ in quotes')
})

const versionOf = (policy: Policy) => compilePolicySync(policy).version

t.test('the version names the content', async t => {
  const one = policyOf(withCondition(eq))
  const same = policyOf({ rules: [{ conditions: [{ ...eq }], effect: 'deny', name: 'r', priority: 0 }], name: 'p' })
  t.match(versionOf(one), /^sha256:[0-9a-f]{64}$/)
  t.equal(versionOf(one), versionOf(same))
  t.not(versionOf(one), versionOf(policyOf(withRule({ conditions: [eq], priority: 1 }))))
  t.not(
    versionOf(policyOf(withCondition({ ...eq, value: '1' }))),
    versionOf(policyOf(withCondition({ ...eq, value: 1 }))),
  )
})

t.test('every mistake has its code and place', async t => {
  const cases: [string, unknown, string[]][] = [
    ['no map', 'x', ['E_CONDITION ']],
    ['a list', [], ['E_CONDITION ']],
    ['no name', {}, ['E_NAME name']],
    ['bad name', { name: 'a b' }, ['E_NAME name']],
    ['long name', { name: 'a'.repeat(129) }, ['E_NAME name']],
    ['misspelt key', { name: 'p', ruls: [] }, ['E_UNKNOWN_KEY ruls']],
    ['key given twice', { name: 'p', default: 'Deny', Default: 'Allow' }, ['E_DUPLICATE Default']],
    ['description that is no text', { name: 'p', description: 1 }, ['E_VALUE description']],
    ['unknown default', { name: 'p', default: 'Block' }, ['E_EFFECT default']],
    ['unknown zone', { name: 'p', timezone: 'Mars/Base' }, ['E_VALUE timezone']],
    ['unknown mode', { name: 'p', onUnreadable: 'maybe' }, ['E_VALUE onUnreadable']],
    ['bad shadowOf', { name: 'p', shadowOf: 'a b' }, ['E_NAME shadowOf']],
    ['rules no list', { name: 'p', rules: {} }, ['E_CONDITIONS rules']],
    ['too many rules', { name: 'p', rules: new Array(20_001).fill({}) }, ['E_LIMIT rules']],
    ['rule no map', { name: 'p', rules: ['x'] }, ['E_CONDITION rules[0]']],
    ['rule without a name', withRule({ name: undefined }), ['E_NAME rules[0].name']],
    ['control character in a name', withRule({ name: 'a\nb' }), ['E_NAME rules[0].name']],
    ['effect missing', withRule({ effect: undefined }), ['E_EFFECT rules[0].effect']],
    ['effect no text', withRule({ effect: 1 }), ['E_EFFECT rules[0].effect']],
    ['priority a text', withRule({ priority: '1' }), ['E_PRIORITY rules[0].priority']],
    ['priority not whole', withRule({ priority: 1.5 }), ['E_PRIORITY rules[0].priority']],
    ['priority too large', withRule({ priority: 2 ** 53 }), ['E_PRIORITY rules[0].priority']],
    ['mode unknown', withRule({ mode: 'shadw' }), ['E_VALUE rules[0].mode']],
    ['riskExempt on a Deny', withRule({ riskExempt: true }), ['E_VALUE rules[0].riskExempt']],
    ['budget on a Deny', withRule({ budget: 'daily' }), ['E_VALUE rules[0].budget']],
    ['credential on a Deny', withRule({ credential: 'shop' }), ['E_VALUE rules[0].credential']],
    ['no name of a credential', withRule({ effect: 'Hitl', credential: 'a b' }), ['E_VALUE rules[0].credential']],
    ['no name of a budget', withRule({ effect: 'Allow', budget: 'Daily!' }), ['E_VALUE rules[0].budget']],
    ['approvals on a Deny', withRule({ approvals: 2 }), ['E_VALUE rules[0].approvals']],
    ['waitSeconds on an Allow', withRule({ effect: 'Allow', waitSeconds: 0 }), ['E_VALUE rules[0].waitSeconds']],
    ['chatApproval on an Allow', withRule({ effect: 'Allow', chatApproval: true }), ['E_VALUE rules[0].chatApproval']],
    ['chatFields alone', withRule({ effect: 'Hitl', chatFields: ['input.path'] }), ['E_VALUE rules[0].chatFields']],
    ['chatFields no list', withRule({ effect: 'Hitl', chatFields: 'input.path' }), ['E_VALUE rules[0].chatFields']],
    [
      'chatFields of a credential',
      withRule({ effect: 'Hitl', chatApproval: true, chatFields: ['input.headers.authorization'] }),
      ['E_VALUE rules[0].chatFields'],
    ],
    [
      'too many chatFields',
      withRule({
        effect: 'Hitl',
        chatApproval: true,
        chatFields: Array.from({ length: 9 }, (_, n) => `input.body.f${n}`),
      }),
      ['E_LIMIT rules[0].chatFields'],
    ],
    ['waitSeconds no number', withRule({ effect: 'Hitl', waitSeconds: '5' }), ['E_VALUE rules[0].waitSeconds']],
    ['whenUndecided on a Deny', withRule({ whenUndecided: 'refused' }), ['E_VALUE rules[0].whenUndecided']],
    ['title on an Allow', withRule({ effect: 'Allow', title: 'x' }), ['E_VALUE rules[0].title']],
    ['unknown field in a title', withRule({ effect: 'Hitl', title: 'to {input.bodi.x}' }), ['E_FIELD rules[0].title']],
    ['brace in a title', withRule({ effect: 'Hitl', title: 'to {input.body' }), ['E_VALUE rules[0].title']],
    ['closing brace in a title', withRule({ effect: 'Hitl', title: 'to }' }), ['E_VALUE rules[0].title']],
    ['risk in a title', withRule({ effect: 'Hitl', title: '{risk.score}' }), ['E_VALUE rules[0].title']],
    ['token in a title', withRule({ effect: 'Hitl', title: '{input.headers.Cookie}' }), ['E_VALUE rules[0].title']],
    ['long title', withRule({ effect: 'Hitl', title: 'x'.repeat(513) }), ['E_LIMIT rules[0].title']],
    ['title of many fields', withRule({ effect: 'Hitl', title: '{input.path}'.repeat(9) }), ['E_LIMIT rules[0].title']],
    ['approvals out of range', withRule({ effect: 'Hitl', approvals: 11 }), ['E_VALUE rules[0].approvals']],
    ['conditions missing', withRule({ conditions: undefined }), ['E_CONDITIONS rules[0].conditions']],
    [
      'conditions misspelt',
      { name: 'p', rules: [{ name: 'r', effect: 'Deny', condtions: [] }] },
      ['E_UNKNOWN_KEY rules[0].condtions', 'E_CONDITIONS rules[0].conditions'],
    ],
    ['condition no map', withCondition('x'), ['E_CONDITION rules[0].conditions[0]']],
    ['condition without field', withCondition({ operator: 'eq' }), ['E_CONDITION rules[0].conditions[0]']],
    [
      'key in a condition',
      withCondition({ ...eq, ignorecase: true }),
      ['E_UNKNOWN_KEY rules[0].conditions[0].ignorecase'],
    ],
    ['field no text', withCondition({ ...eq, field: 1 }), ['E_FIELD rules[0].conditions[0]']],
    ['unknown field', withCondition({ ...eq, field: 'input.metod' }), ['E_FIELD rules[0].conditions[0]']],
    ['unknown operator', withCondition({ ...eq, operator: 'is' }), ['E_OPERATOR rules[0].conditions[0]']],
    ['no operator', withCondition({ field: 'input.path', value: 'x' }), ['E_OPERATOR rules[0].conditions[0]']],
    ['no value', withCondition({ field: 'input.path', operator: 'eq' }), ['E_VALUE rules[0].conditions[0]']],
    ['empty group', withCondition({ any: [] }), ['E_EMPTY_GROUP rules[0].conditions[0].any']],
    ['group no list', withCondition({ all: eq }), ['E_CONDITION rules[0].conditions[0].all']],
    ['group with more', withCondition({ any: [eq], value: 1 }), ['E_UNKNOWN_KEY rules[0].conditions[0].value']],
    [
      'mistake in a group',
      withCondition({ any: [eq, { not: { ...eq, operator: 'x' } }] }),
      ['E_OPERATOR rules[0].conditions[0].any[1].not'],
    ],
    ['too many conditions', withRule({ conditions: new Array(33).fill(eq) }), ['E_LIMIT rules[0].conditions']],
  ]
  for (const [name, document, expected] of cases) t.strictSame(problems(document), expected, name)
})

t.test('values that cannot be meant are mistakes', async t => {
  const wrong: [string, string, unknown][] = [
    ['input.body.n', 'gt', 'ten'],
    ['input.body.n', 'gt', '0x10'],
    ['input.body.n', 'between', '1'],
    ['input.body.n', 'between', '20,10'],
    ['time.clock', 'between', '25:00-26:00'],
    ['time.clock', 'between', '10:00-10:00'],
    ['time.clock', 'gt', '10'],
    ['input.path', 'startsWith', ''],
    ['input.path', 'like', ''],
    ['input.path', 'matches', ''],
    ['input.path', 'matches', '(?=a)b'],
    ['input.path', 'matches', '(a)\\1'],
    ['input.path', 'matches', '('],
    ['input.path', 'pathMatches', 'v1/*'],
    ['input.path', 'pathMatches', '/v1/{id:number}'],
    ['input.path', 'pathMatches', ['/v1', '/v1/{id:}']],
    ['input.url', 'pathMatches', '/v1/*'],
    ['input.path', 'eq', ['/a']],
    ['input.path', 'eq', {}],
    ['input.path', 'in', ''],
    ['input.path', 'in', 'a,,b'],
    ['input.path', 'in', '["a"'],
    ['input.path', 'in', []],
    ['input.path', 'in', [{}]],
    ['input.host', 'eq', 'a.example:443'],
    ['input.host', 'in', 'a.example,b c'],
    ['input.host', 'hostMatches', 'a.*.example'],
    ['input.clientIp', 'ipIn', '10.0.0.0/33'],
    ['input.clientIp', 'ipIn', '10.0.0'],
    ['input.clientIp', 'ipIn', '::/129'],
    ['input.body.x', 'exists', 'maybe'],
    ['input.body.x', 'typeIs', 'integer'],
    ['input.bodyText', 'detects', 'secrets'],
    ['input.port', 'eq', 'https'],
    ['input.port', 'startsWith', '44'],
    ['agent.hostSeen', 'eq', 'yes'],
    ['agent.hostSeen', 'gt', '1'],
    ['time.dayOfWeek', 'in', 'sat,sunday'],
    ['input.destinationClass', 'eq', 'local'],
    ['input.bodyInfo.kind', 'eq', 'xml'],
    ['input.method', 'gt', '1'],
    ['risk.score', 'eq', '0.5'],
    ['risk.score', 'gt', 'high'],
    ['input.headers.authorization', 'startsWith', 'Bearer'],
    ['input.headers.Cookie', 'eq', 'a'],
    ['input.body.n', 'eq', 2 ** 53],
    ['input.body.n', 'eq', Number.NaN],
  ]
  for (const [field, operator, value] of wrong) {
    const found = problems(withCondition({ field, operator, value }))
    t.strictSame(found, ['E_VALUE rules[0].conditions[0]'], `${field} ${operator} ${JSON.stringify(value)}`)
  }
})

t.test('a search in what is no text names what to search', async t => {
  const message = (field: string) => messages(withCondition({ field, operator: 'detects', value: 'secret' }))
  t.match(message('llm.messages'), /not on llm\.messages, a number: use input\.bodyText, or a text in the body/)
  t.match(message('input.port'), /not on input\.port, a number$/)
})

t.test('fields that do not exist are mistakes', async t => {
  const wrong = [
    ...['', 'input', 'method', 'input.headers', 'input.query', 'input.method.x', 'input.path[0]', 'agent.secret'],
    ...[
      'input.__proto__.x',
      'input.constructor.name',
      '__proto__',
      'input.body..a',
      'input.body.a[x]',
      'input.body.a[',
    ],
    ...[
      'input.body.@size.a',
      'input.body.@keys[0]',
      'input.headers.x.@keys',
      'input.query.a.b',
      'input.pathSegments.a',
      'risk',
      'time.minute',
      'input.body["a]',
      'input body',
    ],
    `input.body${'.a'.repeat(300)}`,
    `input.body${'.a'.repeat(40)}`,
  ]
  for (const field of wrong) {
    t.strictSame(problems(withCondition({ field, operator: 'exists' })), ['E_FIELD rules[0].conditions[0]'], field)
  }
})

t.test('a step of another language is no name: only in quotes is it one', async t => {
  for (const step of ['**', '*', 'x-grant-*', '@values', '@text', '@strings', '@Keys', '@']) {
    for (const base of [
      'input.body',
      'input.body.a',
      'mcp.arguments',
      'agent.claims',
      'input.headers',
      'input.query',
    ]) {
      const [problem] = problems(withCondition({ field: `${base}.${step}`, operator: 'exists' }))
      t.equal(problem, 'E_FIELD rules[0].conditions[0]', `${base}.${step}`)
      t.strictSame(problems(withCondition({ field: `${base}["${step}"]`, operator: 'exists' })), [], step)
    }
  }
  const title = { effect: 'Hitl', title: 'Of {input.body.@text}' }
  t.strictSame(problems(withRule(title)), ['E_FIELD rules[0].title'])
  t.strictSame(problems(withCondition({ field: 'input.body.a@b', operator: 'exists' })), [])
  const message = (field: string) => messages(withCondition({ field, operator: 'exists' }))
  t.match(message('input.body.@text'), /not with @text: all of a body is input\.bodyText, .* \["@text"\]/)
  t.match(message('input.body.**'), /\[\*\] is every element of a list, .* \["\*\*"\]$/)
})

t.test('limits hold against hostile documents', async t => {
  let deep: object = eq
  for (let depth = 0; depth < 9; depth++) deep = { not: deep }
  t.match(problems(withCondition(deep)).join(), 'E_LIMIT')
  t.strictSame(problems(withCondition((deep as { not: object }).not)), [], 'eight levels are fine')
  const long = { field: 'input.path', operator: 'matches', value: 'a'.repeat(1_025) }
  t.match(problems(withCondition(long)).join(), 'E_LIMIT')
  const list = { field: 'input.path', operator: 'in', value: new Array(10_001).fill('a') }
  t.match(problems(withCondition(list)).join(), 'E_LIMIT')
  t.match(problems(withRule({ conditions: [{ any: new Array(100_000).fill(eq) }] })).join(), 'E_LIMIT')
})

t.test('a document that holds itself is refused like any other', async t => {
  const loop: unknown[] = []
  loop.push(loop)
  t.strictSame(problems(withRule({ effect: loop })), ['E_EFFECT rules[0].effect'])
  t.strictSame(problems(withCondition({ ...eq, operator: 'in', value: loop })), ['E_VALUE rules[0].conditions[0]'])
  t.match(problems(withRule({ conditions: loop })).join(), 'E_CONDITION')
  const group: { any: unknown[] } = { any: [] }
  group.any.push(...new Array(1_000).fill(group))
  t.match(problems(withCondition(group)).join(), 'E_LIMIT')
})

t.test('a document with endless mistakes gives the first thousand', async t => {
  t.equal(problems({ name: 'p', rules: new Array(5_000).fill('x') }).length, 1_000)
  t.ok(problems(withCondition({ any: new Array(5_000).fill({ any: [] }) })).length < 1_000)
})

t.test('names are unique, and all mistakes come at once', async t => {
  const rule = { name: 'r', effect: 'Deny', conditions: [{ ...eq, operator: 'x' }] }
  t.strictSame(problems({ name: 'p', rules: [rule, { ...rule, effect: 'no' }] }), [
    'E_OPERATOR rules[0].conditions[0]',
    'E_EFFECT rules[1].effect',
    'E_OPERATOR rules[1].conditions[0]',
    'E_DUPLICATE rules[1].name',
  ])
})

t.test('a close misspelling is named', async t => {
  t.match(messages({ name: 'p', ruls: [] }), 'did you mean rules?')
  t.match(messages(withCondition({ ...eq, field: 'input.metod' })), 'did you mean input.method?')
  t.match(messages(withCondition({ ...eq, operator: 'startwith' })), 'did you mean startsWith?')
  t.match(
    messages(withCondition({ ...eq, field: 'input.bodyText', operator: 'detects', value: 'secrets' })),
    'did you mean secret?',
  )
  t.notMatch(messages(withCondition({ ...eq, operator: 'completelyDifferent' })), 'did you mean')
})

t.test('further header fields can be hidden from rules', async t => {
  const document = withCondition({ field: 'input.headers.gateway-authorization', operator: 'eq', value: 'x' })
  const hidden = parsePolicy(document, { hiddenHeaders: ['Gateway-Authorization'] })
  t.match(hidden, { problems: [{ code: 'E_VALUE' }] })
  t.strictSame(problems(document), [])
  t.strictSame(problems(withCondition({ field: 'input.headers.authorization', operator: 'exists' })), [])
})

t.test('a large policy is read in turns, to the same result', async t => {
  const rules = Array.from({ length: 250 }, (_, index) => ({ name: `r${index}`, effect: 'Deny', conditions: [eq] }))
  t.ok((await turnsDuring(() => parsePolicyInTurns({ name: 'p', rules }))) >= 2)
  t.strictSame(await parsePolicyInTurns({ name: 'p', rules }), parsePolicy({ name: 'p', rules }))
  t.match(await parsePolicyInTurns({ name: 'p', rules: [1] }), { problems: [{ path: 'rules[0]' }] })
})
