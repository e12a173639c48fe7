/** Large policies are checked in a time that does not grow with the square of their rules. */
import t from 'tap'
import { askRule } from '../../../src/policy/evaluation/rule.ts'
import { Examined, factsOf } from '../../../src/policy/lint/examined.ts'
import { Narrowing } from '../../../src/policy/lint/narrowing.ts'
import { orderWarnings } from '../../../src/policy/lint/order.ts'
import { False } from '../../../src/policy/values/truth.ts'
import { createRandom, pick, randomHead, randomNode, withBodies } from '../../fixtures/random-policy.ts'
import { policyOf } from '../../fixtures/rulebook.ts'

/** Rules on the body alone. */
function large(count: number, condition: (n: number) => object): Examined {
  const rules = Array.from({ length: count }, (_, n) => ({
    ...{ name: `r${n}`, effect: 'Deny' },
    conditions: [{ field: 'input.body.tool', ...condition(n) }],
  }))
  return new Examined(policyOf({ name: 'p', rules }))
}

t.test('the work for rules that each demand a value grows with their number', async t => {
  const values = (n: number) => ({ operator: n % 2 === 0 ? 'eq' : 'in', value: n % 2 === 0 ? `t${n}` : `t${n},u${n}` })
  const [small, big] = [500, 5_000].map(count => orderWarnings(large(count, values)).work)
  t.equal(big, 10 * small!)
  t.equal(small, 500)
  const doubled = large(5_000, n => ({ operator: 'eq', value: `t${n % 4_990}` }))
  const { warnings } = orderWarnings(doubled)
  t.strictSame(
    warnings.map(({ code, path }) => `${code} ${path}`),
    Array.from({ length: 10 }, (_, n) => `W_UNREACHABLE rules[${4_990 + n}]`),
  )
  t.strictSame(doubled.unfinished, [])
})

t.test('the work for other rules ends, and the report says where', async t => {
  for (const condition of [
    (n: number) => ({ operator: 'lt', value: n }),
    (n: number) => ({ operator: 'matches', value: `^t${n}[a-z]$` }),
  ]) {
    const examined = large(1_000, condition)
    const { work } = orderWarnings(examined, 100_000)
    t.ok(work >= 100_000 && work < 100_000 + 3 * 8 * 1_000, `${work}`)
    t.match(examined.unfinished, [{ code: 'W_UNREACHABLE' }, { code: 'W_WITNESS' }])
    for (const { rules } of examined.unfinished) t.ok(rules > 500 && rules < 950, `${rules}`)
  }
  const few = large(100, n => ({ operator: 'lt', value: n }))
  orderWarnings(few)
  t.strictSame(few.unfinished, [])
})

t.test('rules that are found by what they demand are all that can match', async t => {
  const seed = Math.floor(Math.random() * 2 ** 32)
  const random = createRandom(seed)
  for (let count = 0; count < 100; count++) {
    const rules = Array.from({ length: 40 }, (_, n) => ({
      name: `r${n}`,
      effect: pick(random, ['Allow', 'Deny', 'Hitl']),
      conditions: [randomNode(random), randomNode(random)],
    }))
    const { compiled } = new Examined(policyOf({ name: 'p', rules }))
    const narrowing = new Narrowing(compiled)
    for (const request of withBodies(randomHead(random), 3, random)) {
      const facts = factsOf(request)
      const matching = (list: typeof compiled.rules) =>
        list.filter(rule => askRule(rule, facts) !== False).map(({ rule }) => rule.name)
      t.strictSame(matching(narrowing.before(39, facts)), matching(compiled.rules.slice(0, 39)), `seed ${seed}`)
    }
  }
})
