import t from 'tap'
import { Examined } from '../../../src/policy/lint/examined.ts'
import { lintPolicy } from '../../../src/policy/lint/lint.ts'
import { passingRequests } from '../../../src/policy/lint/missing-passes.ts'
import { policyOf } from '../../fixtures/rulebook.ts'

type Draft = Record<string, unknown>

const is = (field: string, operator: string, value: unknown, rest: Draft = {}): Draft => ({
  ...{ field, operator, value },
  ...rest,
})

/** Places and texts of W_MISSING_PASSES. */
function missing(rules: readonly Draft[], rest: Draft = {}) {
  const named = rules.map((rule, index) => ({ name: `r${index}`, priority: 100 - index, effect: 'Hitl', ...rule }))
  const { warnings } = lintPolicy(policyOf({ name: 'p', rules: named, ...rest }))
  return warnings.filter(({ code }) => code === 'W_MISSING_PASSES')
}

const origin = is('input.origin', 'eq', 'https://api.shop.example')
const refunds = is('input.path', 'pathMatches', '/v1/refunds/**')
const post = is('input.method', 'eq', 'POST')
const amount = is('input.body.amount', 'gt', 100)
const shop = { effect: 'Allow', conditions: [origin] }

t.test('the field, the Allow rule and a request are named', async t => {
  const [found, ...more] = missing([{ conditions: [post, origin, refunds, amount] }, shop])
  t.match(found, { path: 'rules[0].conditions[3]', rule: 'r0' })
  t.match(
    found?.message,
    /^without input\.body\.amount a request is allowed by rule "r1", such as POST https:\/\/api\.shop/,
  )
  t.match(found?.message, /add a Hitl rule for input\.body\.amount notExists$/)
  t.strictSame(more, [])
})

t.test('a field in a group, in a list, of a tool and of a model call counts', async t => {
  const nested = is('input.body.order.items[*].price', 'gte', 100)
  const tool = [
    is('mcp.method', 'eq', 'tools/call'),
    is('mcp.tool', 'eq', 'pay'),
    is('mcp.arguments.amount', 'gt', 100),
  ]
  const model = [is('llm.model', 'eq', 'gpt-5'), is('llm.maxTokens', 'gt', 8192)]
  for (const conditions of [[nested], [{ any: [amount, nested] }], [{ all: [post, { any: [amount] }] }], tool, model]) {
    for (const effect of ['Hitl', 'Deny']) {
      t.match(missing([{ effect, conditions }, shop]), [{ rule: 'r0' }], JSON.stringify(conditions))
    }
  }
})

t.test('guards of other rules are passed', async t => {
  const guard = { effect: 'Deny', conditions: [is('input.body.currency', 'notIn', ['EUR', 'CHF'])] }
  const other = {
    effect: 'Deny',
    conditions: [{ any: [is('input.host', 'ne', 'api.shop.example'), is('input.scheme', 'ne', 'https')] }],
  }
  t.match(missing([other, guard, { conditions: [post, amount] }, shop]), [{ rule: 'r2' }])
})

t.test('without a way around the rule there is no warning', async t => {
  const rules = { conditions: [origin, amount] }
  const closed: [string, readonly Draft[], Draft?][] = [
    ['no Allow rule', [rules]],
    [
      'the default holds the rest',
      [
        rules,
        { effect: 'Allow', conditions: [origin, is('input.method', 'eq', 'GET'), is('input.bodyInfo.size', 'eq', 0)] },
      ],
    ],
    [
      'the Allow rule wants the field',
      [rules, { effect: 'Allow', conditions: [origin, is('input.body.amount', 'lte', 100)] }],
    ],
    [
      'another rule sees what is missing',
      [rules, { conditions: [is('input.body.amount', 'notExists', 'true')] }, shop],
    ],
    [
      'the rule itself sees it',
      [{ conditions: [origin, { any: [amount, is('input.body.amount', 'notExists', 'true')] }] }, shop],
    ],
    [
      'a negation holds of what is missing',
      [{ conditions: [origin, { not: is('input.body.amount', 'lte', 100) }] }, shop],
    ],
    ['another host', [rules, { effect: 'Allow', conditions: [is('input.origin', 'eq', 'https://other.example')] }]],
    ['a shadow rule decides nothing', [{ ...rules, mode: 'shadow' }, shop]],
    ['a shadow rule allows nothing', [rules, { ...shop, mode: 'shadow' }]],
    ['the Allow rule is asked first', [shop, rules]],
    ['a question about the presence', [{ conditions: [origin, is('input.body._method', 'exists', 'true')] }, shop]],
    ['a search for what must not be there', [{ conditions: [origin, is('input.body.text', 'contains', 'x')] }, shop]],
    ['a field of the head', [{ conditions: [origin, is('input.query.amount', 'gt', 1)] }, shop]],
    ['a call without its name is no call', [{ conditions: [origin, is('mcp.tool', 'eq', 'pay')] }, shop]],
  ]
  for (const [title, policy, rest] of closed) t.strictSame(missing(policy, rest), [], title)
})

t.test('the search is given up after a bounded number of rules that were asked', async t => {
  // Each rule is decided by the first one: nothing is found, whatever is tried.
  const rules = Array.from({ length: 1_000 }, (_, index) => {
    const effect = index % 2 === 0 ? 'Hitl' : 'Allow'
    const condition = index % 2 === 0 ? is('input.body.amount', 'gt', index) : is('input.body.kind', 'eq', `k${index}`)
    return { name: `r${index}`, effect, conditions: [condition] }
  })
  const examined = new Examined(policyOf({ name: 'p', rules }))
  const walk = examined.walk.bind(examined)
  let asked = 0
  examined.walk = facts => {
    const found = walk(facts)
    asked += found.evaluated
    return found
  }
  t.strictSame(passingRequests(examined).length, 1)
  t.ok(asked > 100_000 && asked < 1_000_000, `${asked} rules`)
})
