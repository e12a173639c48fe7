import t from 'tap'
import type { Policy } from '../../../src/policy/language/model.ts'
import { Examined } from '../../../src/policy/lint/examined.ts'
import { lintPolicy } from '../../../src/policy/lint/lint.ts'
import { passingRequests } from '../../../src/policy/lint/missing-passes.ts'
import type { DescribedRequest } from '../../../src/policy/request/describe.ts'
import { naiveVerdict } from '../../fixtures/naive-policy.ts'
import { createRandom, randomPolicy } from '../../fixtures/random-policy.ts'
import { policyOf } from '../../fixtures/rulebook.ts'
import { runs } from '../../fixtures/runs.ts'

const verdict = (own: Policy, request: DescribedRequest) =>
  naiveVerdict({ own, guardrail: undefined, isRisky: false }, request)

/** Whether a request has a field, by the naive evaluator. */
function has(field: string, request: DescribedRequest): boolean {
  const rules = [{ name: 'r', effect: 'Deny', conditions: [{ field, operator: 'exists' }] }]
  return verdict(policyOf({ name: 'p', default: 'Allow', rules }), request).effect === 'Deny'
}

t.test(
  'whenever W_MISSING_PASSES is reported, leaving the field out turns the effect of the rule into Allow',
  async t => {
    const seed = Math.floor(Math.random() * 2 ** 32)
    t.comment(`seed ${seed}`)
    const random = createRandom(seed)
    const fields = new Set<string>()
    const count = runs(40_000)
    let found = 0
    for (let run = 0; run < count; run++) {
      const policy = policyOf(randomPolicy(random, 6))
      const passing = passingRequests(new Examined(policy))
      for (const { rule, leaf, allowedBy, whole, request } of passing) {
        const { field } = leaf.condition
        const before = verdict(policy, whole)
        const after = verdict(policy, request)
        const holds =
          before.rule === rule.name &&
          before.effect !== 'Allow' &&
          after.rule === allowedBy.name &&
          after.effect === 'Allow' &&
          has(field, whole) &&
          !has(field, request)
        if (!holds) t.fail(JSON.stringify({ seed, policy, field, before, after }))
        fields.add(field)
        found += 1
      }
      if (run % 16 === 0) {
        const warned = lintPolicy(policy).warnings.filter(({ code }) => code === 'W_MISSING_PASSES')
        if (warned.length !== passing.length)
          t.fail(`${warned.length} warnings, ${passing.length} requests, seed ${seed}`)
        for (const [index, { message }] of warned.entries()) {
          if (!message.includes(passing[index]!.leaf.condition.field)) t.fail(message)
        }
      }
    }
    t.ok(found > count / 40, `${found} warnings in ${count} policies`)
    t.ok(fields.size >= 4, [...fields].join())
  },
)
