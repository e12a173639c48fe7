import t from 'tap'
import { milderRequests } from '../../../src/policy/diff/examples.ts'
import { compareRuleSets } from '../../../src/policy/diff/rules.ts'
import { compilePolicySync } from '../../../src/policy/evaluation/compile.ts'
import { type Policy, stricter } from '../../../src/policy/language/model.ts'
import type { DescribedRequest } from '../../../src/policy/request/describe.ts'
import { naiveVerdict } from '../../fixtures/naive-policy.ts'
import {
  createRandom,
  pick,
  randomCondition,
  randomHead,
  randomPolicy,
  withBodies,
} from '../../fixtures/random-policy.ts'
import { policyOf } from '../../fixtures/rulebook.ts'
import { runs } from '../../fixtures/runs.ts'

type Draft = Record<string, unknown>

const is = (field: string, operator: string, value: unknown): Draft => ({ field, operator, value })
const origin = is('input.origin', 'eq', 'https://api.example.com')
const rule = (name: string, effect: string, conditions: readonly Draft[], rest: Draft = {}): Draft => {
  return { name, effect, conditions: [origin, ...conditions], ...rest }
}

const compiled = (rules: readonly Draft[], rest: Draft = {}) =>
  compilePolicySync(policyOf({ name: 'p', rules, ...rest }))

const differences = (before: readonly Draft[], after: readonly Draft[]) =>
  compareRuleSets(compiled(before), compiled(after)).map(one => `${one.rule} ${one.difference} ${one.isSafe}`)

t.test('each rule has one difference, and it is known whether it can make an effect milder', async t => {
  const small = rule('r', 'Allow', [is('input.body.amount', 'lt', 10)])
  const large = rule('r', 'Allow', [is('input.body.amount', 'lt', 100)])
  const other = rule('r', 'Allow', [is('input.body.tag', 'eq', 'x')])
  const deny = (value: string) => rule('d', 'Deny', [is('input.path', 'pathMatches', value)])
  const [a, b] = [rule('a', 'Allow', []), rule('b', 'Deny', [])]
  const cases: [Draft[], Draft[], string[]][] = [
    [[small], [small], ['r same true']],
    [[large], [small], ['r narrower true']],
    [[small], [large], ['r wider false']],
    [[small], [other], ['r not proved false']],
    [[deny('/a/**')], [deny('/a/{id}')], ['d narrower false']],
    [[deny('/a/{id:int}')], [deny('/a/{id}')], ['d wider true']],
    [[], [small], ['r added false']],
    [[], [b], ['b added true']],
    [[small], [], ['r removed true']],
    [[b], [], ['b removed false']],
    [
      [{ ...a, priority: 1 }, b],
      [a, { ...b, priority: 1 }],
      ['b same true', 'a moved false'],
    ],
    [[b], [{ ...b, effect: 'Hitl' }], ['b changed false']],
    [[small], [{ ...small, riskExempt: true }], ['r changed false']],
    [[small], [{ ...small, budget: 'daily' }], ['r changed false']],
    [[small], [{ ...small, credential: 'shop' }], ['r changed false']],
    [[b], [{ ...b, reason: 'x' }], ['b changed true']],
    [[b], [{ ...b, onUnreadable: 'noMatch' }], ['b changed false']],
    [[b], [{ ...b, mode: 'shadow' }], ['b changed false']],
  ]
  for (const [before, after, expected] of cases) t.strictSame(differences(before, after), expected)
})

t.test('a request shows where the new policy is milder, also for one value of a list', async t => {
  const read = (value: unknown) => rule('read', 'Allow', [is('input.path', 'pathMatches', value)])
  const milder = milderRequests(compiled([read(['/a'])]), compiled([read(['/a', '/b/{id:int}'])]))
  t.match(milder, [
    { method: 'GET', url: 'https://api.example.com/b/7', before: 'Deny', after: 'Allow', ruleAfter: 'read' },
  ])
  const guarded = [
    rule('no', 'Deny', [is('input.body.admin', 'exists', true)], { priority: 1 }),
    rule('a', 'Allow', []),
  ]
  const [lost] = milderRequests(compiled(guarded), compiled(guarded.slice(1)))
  t.match(lost, { body: /admin/, ruleBefore: 'no', ruleAfter: 'a' })
  t.strictSame(milderRequests(compiled(guarded.slice(1)), compiled(guarded)), [])
  t.match(milderRequests(compiled([]), compiled([], { default: 'Allow' })), [{ ruleBefore: null, ruleAfter: null }])
})

t.test('a policy that is said to be milder for no request is milder for none, by the naive evaluator', async t => {
  const seed = Math.floor(Math.random() * 2 ** 32)
  const random = createRandom(seed)
  const tally = { safe: 0, shown: 0 }
  const wrong: unknown[] = []
  const effectOf = (own: Policy, request: DescribedRequest) =>
    naiveVerdict({ own, guardrail: undefined, isRisky: false }, request).effect
  for (let run = 0, count = runs(10_000, 300); run < count && wrong.length === 0; run++) {
    const document = randomPolicy(random, 4)
    const changed = { ...document, rules: document.rules.map(one => (random() < 0.4 ? changedRule(random, one) : one)) }
    const [old, now] = [policyOf(document), policyOf(changed)]
    const [before, after] = [compilePolicySync(old), compilePolicySync(now)]
    const isSafe = compareRuleSets(before, after).every(one => one.isSafe)
    const shown = milderRequests(before, after)
    if (isSafe && shown.length > 0) wrong.push({ seed, document, changed, shown })
    if (isSafe) tally.safe++
    tally.shown += shown.length
    for (const request of isSafe ? withBodies(randomHead(random), 3, random) : []) {
      const [one, other] = [effectOf(old, request), effectOf(now, request)]
      if (stricter(one, other) !== other) wrong.push({ seed, document, changed, request, one, other })
    }
  }
  t.strictSame(wrong, [])
  for (const [what, times] of Object.entries(tally)) t.ok(times > 0, `${what}: ${times}`)
})

function changedRule(random: () => number, one: Draft): Draft {
  const conditions = one['conditions'] as Draft[]
  const change = pick(random, ['more', 'fewer', 'other'])
  if (change === 'more') return { ...one, conditions: [...conditions, randomCondition(random)] }
  return { ...one, conditions: change === 'fewer' ? conditions.slice(1) : [randomCondition(random)] }
}
