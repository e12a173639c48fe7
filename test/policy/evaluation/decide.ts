/** Threats T11 and T82 of SECURITY.md. */

import t from 'tap'
import { createActivityLog } from '../../../src/limits/activity.ts'
import { compilePolicySync } from '../../../src/policy/evaluation/compile.ts'
import { decideHead } from '../../../src/policy/evaluation/decide.ts'
import { createRulebook } from '../../../src/policy/evaluation/rulebook.ts'
import type { RequestDescription } from '../../../src/policy/request/describe.ts'
import { defaultRisk } from '../../../src/policy/risk/risk-signals.ts'
import { decideBody } from '../../fixtures/decide.ts'
import { decision, described, headDecision, noRisk, policyOf, rulebookOf } from '../../fixtures/rulebook.ts'

type Draft = Record<string, unknown>

function rule(name: string, effect: string, conditions: readonly Draft[] = [], rest: Draft = {}): Draft {
  return { name, effect, conditions, ...rest }
}

const post = (body?: unknown): RequestDescription => ({ request: { method: 'POST', url: 'https://a.example/x', body } })
const amount = { field: 'input.body.amount', operator: 'gt', value: '100' }
const isPost = { field: 'input.method', operator: 'eq', value: 'POST' }
const policy = (rules: readonly Draft[], rest: Draft = {}) => ({ name: 'p', rules, ...rest })

t.test('an agent without a policy gets the configured effect', async t => {
  for (const effect of ['Deny', 'Hitl', 'Allow'] as const) {
    const rulebook = rulebookOf(policy([]), { policy: undefined, policyName: null, unassignedEffect: effect })
    t.match(decision(rulebook, post()), {
      decision: effect,
      source: 'unassigned',
      policy: null,
      rule: null,
      phase: 'head',
    })
  }
})

t.test('a policy that is not there denies, whatever unassigned agents get', async t => {
  const rulebook = rulebookOf(policy([]), { policy: undefined, policyName: 'gone', unassignedEffect: 'Allow' })
  t.match(decision(rulebook, post()), {
    ...{ decision: 'Deny', source: 'policy-missing', policy: 'gone' },
    reason: 'policy "gone" not found',
  })
})

t.test('a rule that cannot be evaluated follows onUnreadable', async t => {
  const cases: [string, string, string][] = [
    ['failSafe', 'Deny', 'Deny'],
    ['failSafe', 'Hitl', 'Hitl'],
    ['failSafe', 'Allow', 'default'],
    ['match', 'Allow', 'Allow'],
    ['noMatch', 'Deny', 'default'],
  ]
  for (const [onUnreadable, effect, wanted] of cases) {
    const rulebook = rulebookOf(policy([rule('r', effect, [amount])], { onUnreadable, default: 'Hitl' }))
    const { decision: found, source } = decision(rulebook, post({ amount: {} }))
    t.equal(source === 'default' ? 'default' : found, wanted, `${onUnreadable} ${effect}`)
  }
})

t.test('onUnreadable of a rule stands above that of its policy', async t => {
  const cases: [string, string, string, string][] = [
    ['failSafe', 'noMatch', 'Deny', 'default'],
    ['failSafe', 'match', 'Allow', 'Allow'],
    ['noMatch', 'failSafe', 'Deny', 'Deny'],
    ['match', 'failSafe', 'Allow', 'default'],
  ]
  for (const [ofPolicy, onUnreadable, effect, wanted] of cases) {
    const rules = [{ ...rule('r', effect, [amount]), onUnreadable }]
    const rulebook = rulebookOf(policy(rules, { onUnreadable: ofPolicy, default: 'Hitl' }))
    const { decision: found, source } = decision(rulebook, post({ amount: {} }))
    t.equal(source === 'default' ? 'default' : found, wanted, `${ofPolicy}, ${onUnreadable} ${effect}`)
  }
})

t.test('the reason of a rule that could not be evaluated says so', async t => {
  const rulebook = rulebookOf(policy([rule('big', 'Deny', [amount])], { default: 'Allow' }))
  const found = decision(rulebook, post({ amount: {} }))
  t.equal(
    found.reason,
    'rule "big" applied because input.body.amount could not be evaluated (object where a number is needed)',
  )
  t.strictSame(found.unreadable, ['input.body.amount'])
  const gzip = { request: { ...post('x').request, headers: { 'content-encoding': 'gzip' } } }
  t.match(decision(rulebook, gzip).reason, /the body has a Content-Encoding\)$/)
})

t.test('an Allow that could not be evaluated is named among the unreadable', async t => {
  const rulebook = rulebookOf(policy([rule('small', 'Allow', [amount])]))
  t.match(decision(rulebook, post({ amount: [] })), { decision: 'Deny', source: 'default', unreadable: [] })
  t.match(decision(rulebook, post({ amount: 'x' })), { decision: 'Deny', unreadable: ['input.body.amount'] })
})

t.test('the head decides when the body cannot change the outcome', async t => {
  const rulebook = rulebookOf(policy([rule('b', 'Deny', [amount]), rule('c', 'Deny', [isPost])]))
  const found = headDecision(rulebook, post({ amount: 1 }))
  t.match(found, { decision: 'Deny', source: 'regardless-of-body', rule: null, matched: [], phase: 'head' })
  t.match(found, { reason: 'Deny for any body: rule "b", rule "c"' })
})

t.test('the head asks for the body, and only what waited is decided with it', async t => {
  const rules = [rule('b', 'Hitl', [amount], { priority: 2 }), rule('z', 'Allow', [isPost])]
  const rulebook = rulebookOf(policy(rules))
  const { head, body } = described(post({ amount: 500 }))
  const need = decideHead(rulebook, head)
  t.match(need, { need: 'body', pending: ['b'], otherwise: 'z' })
  if (!('need' in need)) return
  t.match(decideBody(rulebook, head, need, body), { decision: 'Hitl', rule: 'b', phase: 'body', evaluated: 3 })
  t.match(
    decideBody(rulebook, head, { ...need, need: 'body' }, body),
    { rule: 'b' },
    'also from a copy of the question',
  )
  t.match(decision(rulebook, post({ amount: 5 })), { decision: 'Allow', rule: 'z', phase: 'body' })
  t.match(decision(rulebook, post()), { decision: 'Allow', rule: 'z', phase: 'head' })
})

t.test('a request keeps the rules it began with', async t => {
  const before = rulebookOf(policy([rule('b', 'Hitl', [amount]), rule('z', 'Allow')]))
  const { head, body } = described(post({ amount: 500 }))
  const need = decideHead(before, head)
  const after = rulebookOf(policy([rule('open', 'Allow')]))
  t.match('need' in need && decideBody(after, head, need, body), { decision: 'Hitl', rule: 'b' })
})

const guard = (rules: readonly Draft[], rest: Draft = {}) =>
  compilePolicySync(policyOf({ name: 'guard', default: 'Allow', rules, ...rest }))

t.test('the guardrail restricts and never grants', async t => {
  const allow = policy([rule('open', 'Allow')])
  const deny = policy([rule('closed', 'Deny')])
  const review = policy([rule('ask', 'Hitl')])
  const denies = guard([rule('g', 'Deny')])
  const asks = guard([rule('g', 'Hitl')])
  const opens = guard([rule('g', 'Allow')])
  t.match(decision(rulebookOf(allow, { global: denies }), post()), {
    decision: 'Deny',
    source: 'global',
    policy: 'guard',
    rule: 'g',
  })
  t.match(decision(rulebookOf(allow, { global: asks }), post()), { decision: 'Hitl', source: 'global' })
  t.match(decision(rulebookOf(allow, { global: opens }), post()), { decision: 'Allow', source: 'rule', policy: 'p' })
  t.match(decision(rulebookOf(deny, { global: opens }), post()), { decision: 'Deny', source: 'rule', rule: 'closed' })
  t.match(
    decision(rulebookOf(deny, { global: asks }), post()),
    { decision: 'Deny', rule: 'closed' },
    'nobody can approve it',
  )
  t.match(decision(rulebookOf(review, { global: asks }), post()), { decision: 'Hitl', source: 'global' })
  t.match(decision(rulebookOf(allow, { global: guard([], { default: 'Deny' }) }), post()), {
    decision: 'Deny',
    source: 'global',
    rule: null,
  })
})

t.test('the guardrail also holds for agents without a policy', async t => {
  const unassigned = {
    policy: undefined,
    policyName: null,
    unassignedEffect: 'Allow',
    global: guard([rule('g', 'Deny')]),
  } as const
  t.match(decision(rulebookOf(policy([]), unassigned), post()), { decision: 'Deny', source: 'global' })
})

t.test('guardrail and policy wait for the body together', async t => {
  const rulebook = rulebookOf(policy([rule('z', 'Allow')]), { global: guard([rule('g', 'Deny', [amount])]) })
  t.match(headDecision(rulebook, post({ amount: 1 })), { need: 'body', pending: ['g'], otherwise: 'z' })
  t.match(decision(rulebook, post({ amount: 500 })), { decision: 'Deny', source: 'global', rule: 'g', phase: 'body' })
  t.match(decision(rulebook, post({ amount: 1 })), { decision: 'Allow', source: 'rule', rule: 'z', phase: 'body' })
  const closed = rulebookOf(policy([]), { global: guard([rule('g', 'Deny', [amount])]) })
  t.match(
    headDecision(closed, post({ amount: 1 })),
    { decision: 'Deny', source: 'default' },
    'the policy denies anyway',
  )
})

t.test('shadow rules never decide, and are reported when they would have', async t => {
  const rules = [
    rule('dark', 'Deny', [isPost], { mode: 'shadow', priority: 9 }),
    rule('dark body', 'Hitl', [amount], { mode: 'shadow', priority: 8 }),
    rule('open', 'Allow', [], { priority: 5 }),
    rule('late', 'Deny', [], { mode: 'shadow', priority: 1 }),
  ]
  const found = headDecision(rulebookOf(policy(rules)), post({ amount: 500 }))
  t.match(found, { decision: 'Allow', rule: 'open', phase: 'head' }, 'the body is not asked for')
  t.strictSame('shadow' in found && found.shadow, [{ rule: 'dark', would: 'Deny' }])
})

t.test('a policy in shadow is reported where it differs', async t => {
  const shadows = [
    compilePolicySync(policyOf({ name: 'next', rules: [rule('strict', 'Deny', [isPost])], shadowOf: 'p' })),
    compilePolicySync(policyOf({ name: 'same', rules: [rule('open', 'Allow')] })),
    compilePolicySync(policyOf({ name: 'none', default: 'Hitl' })),
  ]
  const found = decision(rulebookOf(policy([rule('open', 'Allow')]), { shadows }), post())
  t.strictSame(found.shadow, [
    { rule: 'strict', would: 'Deny', policy: 'next' },
    { rule: '(default)', would: 'Hitl', policy: 'none' },
  ])
})

t.test('a rule may ask for several reviewers', async t => {
  const rulebook = rulebookOf(policy([rule('two', 'Hitl', [], { approvals: 2 })]))
  t.equal(decision(rulebook, post()).approvals, 2)
  t.equal(decision(rulebookOf(policy([], { default: 'Hitl' })), post()).approvals, 1)
})

t.test('evaluation that fails denies, at the head and with the body', async t => {
  const rulebook = rulebookOf(policy([rule('open', 'Allow', [isPost])]))
  const { head, body } = described(post({ amount: 1 }))
  const hostile = {
    ...head,
    get method(): string {
      throw new Error('what the request said')
    },
  }
  t.match(decideHead(rulebook, hostile), {
    decision: 'Deny',
    source: 'error',
    reason: 'evaluation failed: Error',
    rule: null,
  })
  const need = { need: 'body', pending: [], otherwise: null } as const
  t.match(decideBody(rulebook, hostile, need, body), { decision: 'Deny', source: 'error', phase: 'body' })
})

t.test('the record has the reason for people and less for the agent', async t => {
  const rules = [rule('refund', 'Hitl', [isPost, amount], { priority: 100, reason: 'Refunds above 100 need approval' })]
  const rulebook = rulebookOf(policy(rules))
  t.strictSame(decision(rulebook, post({ amount: 250 })), {
    decision: 'Hitl',
    source: 'rule',
    policy: 'p',
    policyVersion: rulebook.policy?.version,
    rule: 'refund',
    budget: null,
    credential: null,
    priority: 100,
    phase: 'body',
    reason: 'rule "refund": Refunds above 100 need approval: input.method eq "POST", input.body.amount gt "100"',
    publicReason: 'Rule "refund": Refunds above 100 need approval',
    ruleReason: 'Refunds above 100 need approval',
    title: null,
    chat: null,
    operation: null,
    matched: [
      { condition: 'input.method eq "POST"', actual: 'POST' },
      { condition: 'input.body.amount gt "100"', actual: 250 },
    ],
    risk: { score: 0, threshold: 0.8, signals: [] },
    shadow: [],
    unreadable: [],
    approvals: 1,
    waitSeconds: null,
    whenUndecided: 'accepted',
    evaluated: 2,
  })
})

t.test('T82 a chat may approve what each rule that holds it opens, and whose values it shows whole', async t => {
  const opened = (more: object = {}) => rule('open', 'Hitl', [isPost], { chatApproval: true, ...more })
  const fields = { chatFields: ['input.body.amount', 'input.body.to'] }
  const chat = (body: unknown, rules = [opened(fields)], parts = {}) =>
    decision(rulebookOf(policy(rules), parts), post(body)).chat
  t.strictSame(chat({ amount: 250 }), [
    { field: 'input.body.amount', value: '250' },
    { field: 'input.body.to', value: '(missing)' },
  ])
  for (const to of ['x'.repeat(65), 'a\u202eb', 'a\nb', ['a'], { a: 1 }, `ghp_${'a1B2'.repeat(9)}`]) {
    t.equal(chat({ amount: 1, to }), null, JSON.stringify(to))
  }
  t.equal(chat({ amount: 1 }, [rule('closed', 'Hitl', [isPost])]), null)
  t.equal(chat({ amount: 1 }, [], { unassignedEffect: 'Hitl' }), null)
  const guard = (rules: readonly object[]) => ({ global: rulebookOf({ ...policy([]), name: 'g', rules }).policy })
  t.match(chat({ amount: 1 }, [opened(fields)], guard([opened()])), [{ value: '1' }, { value: '(missing)' }])
  t.equal(chat({ amount: 1 }, [rule('closed', 'Hitl', [isPost])], guard([opened()])), null)
  t.equal(chat({ amount: 1 }, [opened()], guard([rule('closed', 'Hitl', [isPost])])), null)
})

t.test("the agent learns rule and author's reason, never a value", async t => {
  const secret = { field: 'input.headers.x-plan', operator: 'eq', value: 'gold' }
  const given = { request: { url: 'https://a.example/', headers: { 'x-plan': 'gold' } } }
  t.equal(decision(rulebookOf(policy([rule('r', 'Deny', [secret])])), given).publicReason, 'Rule "r".')
  t.equal(decision(rulebookOf(policy([])), given).publicReason, 'No rule of the policy allows this request.')
  for (const parts of [{ policyName: null }, { policyName: 'gone' }]) {
    const { publicReason } = decision(rulebookOf(policy([]), { policy: undefined, ...parts }), given)
    t.notMatch(publicReason, 'gold')
  }
})

t.test('a long list of conditions is cut in the reason', async t => {
  const many = ['a', 'b', 'c', 'd', 'e'].map(name => ({
    field: `input.headers.${name}`,
    operator: 'notExists',
    value: 'true',
  }))
  t.match(decision(rulebookOf(policy([rule('r', 'Deny', many)])), post()).reason, '2 more')
  t.equal(decision(rulebookOf(policy([rule('r', 'Deny')])), post()).reason, 'rule "r": every request')
})

t.test('groups are shown by what held in them', async t => {
  const group = {
    any: [
      isPost,
      { not: { field: 'input.headers.x', operator: 'exists' } },
      { field: 'input.path', operator: 'eq', value: '/no' },
    ],
  }
  const found = decision(rulebookOf(policy([rule('r', 'Deny', [group])])), post())
  t.strictSame(found.matched, [
    { condition: 'input.method eq "POST"', actual: 'POST' },
    { condition: 'not(input.headers.x exists "true")', actual: null },
  ])
})

t.test('a rulebook says whether a name must be resolved first', async t => {
  const reads = {
    name: 'p',
    rules: [rule('r', 'Deny', [{ field: 'input.destinationIp', operator: 'ipIn', value: '10.0.0.0/8' }])],
  }
  const parts = { policyName: null, unassignedEffect: 'Deny', global: undefined, risk: noRisk } as const
  const compiled = compilePolicySync(policyOf(reads))
  t.equal(createRulebook({ ...parts, policy: compiled, shadows: [] }).readsDestination, true)
  t.equal(createRulebook({ ...parts, policy: undefined, shadows: [compiled] }).readsDestination, true)
  t.equal(rulebookOf(policy([rule('r', 'Deny', [isPost])])).readsDestination, false)
})

t.test('a decision names the budget of its rule, and waits for the body when that decides which it is', async t => {
  const byBody = policy([
    rule('large', 'Allow', [amount], { budget: 'large', priority: 1 }),
    rule('rest', 'Allow', [], { budget: 'small' }),
  ])
  t.match(headDecision(rulebookOf(byBody), post({ amount: 500 })), { need: 'body' })
  t.match(decision(rulebookOf(byBody), post({ amount: 500 })), { rule: 'large', budget: 'large' })
  t.match(decision(rulebookOf(byBody), post({ amount: 5 })), { rule: 'rest', budget: 'small' })
  const unnamed = policy([rule('some', 'Allow', [amount]), rule('rest', 'Allow')])
  t.match(decision(rulebookOf(unnamed), post({ amount: 5 })), { phase: 'head', budget: null })
})

t.test(
  'a decision names the credential of the rule of the policy, also when a guardrail holds the request',
  async t => {
    const chosen = policy([
      rule('large', 'Allow', [amount], { credential: 'large', priority: 1 }),
      rule('rest', 'Hitl', [], { credential: 'small' }),
    ])
    t.match(decision(rulebookOf(chosen), post({ amount: 500 })), { decision: 'Allow', credential: 'large' })
    t.match(decision(rulebookOf(chosen), post({ amount: 5 })), { decision: 'Hitl', credential: 'small' })
    const global = compilePolicySync(policyOf(policy([rule('ask', 'Hitl', [isPost])])))
    t.match(decision(rulebookOf(chosen, { global }), post({ amount: 500 })), {
      ...{ decision: 'Hitl', rule: 'ask', credential: 'large' },
    })
    const denied = policy([rule('all', 'Deny', [])])
    t.match(decision(rulebookOf(denied), post({ amount: 5 })), { decision: 'Deny', credential: null })
  },
)

t.test('a rule whose credential is not there denies, and its reason says so', async t => {
  const open = policyOf(policy([rule('open', 'Hitl', [], { credential: 'gone' })]))
  const compiled = compilePolicySync(open, { credentials: new Set(['shop']) })
  t.match(decision(rulebookOf(policy([]), { policy: compiled }), post()), {
    ...{ decision: 'Deny', credential: null, publicReason: /what it needs is not there/ },
    reason: 'rule "open" names the credential gone, which is not in Credentials',
  })
})

t.test('a rule whose budget is not there denies, and its reason says so', async t => {
  const open = policyOf(policy([rule('open', 'Allow', [], { budget: 'gone' })]))
  const compiled = compilePolicySync(open, { budgets: new Set(['daily']) })
  t.match(decision(rulebookOf(policy([]), { policy: compiled }), post()), {
    decision: 'Deny',
    budget: null,
    reason: 'rule "open" names the budget gone, which is not in Budgets',
  })
  t.match(decision(rulebookOf(policy([]), { policy: compilePolicySync(open) }), post()), { budget: 'gone' })
})

t.test('the risk threshold turns Allow into Hitl, strictly above', async t => {
  const open = policy([rule('open', 'Allow')])
  const risky = (score: number) => rulebookOf(open, { risk: { ...defaultRisk, score } })
  t.match(decision(risky(0.81), post()), { decision: 'Hitl', source: 'risk', rule: 'open' })
  t.match(decision(risky(0.8), post()), { decision: 'Allow' })
  const exempt = rulebookOf(policy([rule('open', 'Allow', [], { riskExempt: true })]), {
    risk: { ...defaultRisk, score: 1 },
  })
  t.match(decision(exempt, post()), { decision: 'Allow' })
  const mixed = policy([rule('b', 'Allow', [amount]), rule('open', 'Allow', [], { riskExempt: true })])
  const atRisk = { risk: { ...defaultRisk, score: 1 } }
  t.match(decision(rulebookOf(mixed, atRisk), post({ amount: 5 })), { decision: 'Allow', rule: 'open' })
  t.match(decision(rulebookOf(mixed, atRisk), post({ amount: 5000 })), { decision: 'Hitl', source: 'risk', rule: 'b' })
  const denied = rulebookOf(policy([]), { risk: { ...defaultRisk, score: 1 } })
  t.match(decision(denied, post()), { decision: 'Deny', source: 'default' })
  t.equal(decision(risky(0.81), post()).publicReason, 'The risk of this request is above the threshold.')
})

t.test('the reason is of the moment: counters that move between head and body change nothing', async t => {
  const first = { field: 'agent.requestsLastMinute', operator: 'lte', value: '1' }
  const small = { field: 'input.body.amount', operator: 'lte', value: '100' }
  const rulebook = rulebookOf(policy([rule('burst', 'Deny', [first, small])], { default: 'Allow' }))
  const { head, body } = described(post({ amount: 5 }))
  const log = createActivityLog()
  log.request('a', 0)
  const live = Object.defineProperty({ ...head }, 'activity', { get: () => log.of('a', 0) })
  const need = decideHead(rulebook, live)
  for (let count = 0; count < 9; count++) log.request('a', 0)
  const found = 'need' in need ? decideBody(rulebook, live, need, body) : need
  t.match(found, {
    decision: 'Deny',
    reason: 'rule "burst": agent.requestsLastMinute lte "1", input.body.amount lte "100"',
    matched: [{ actual: 1 }, { actual: 5 }],
  })
})
