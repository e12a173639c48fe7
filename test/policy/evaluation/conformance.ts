import { readFileSync } from 'node:fs'
import t from 'tap'
import { compilePolicySync } from '../../../src/policy/evaluation/compile.ts'
import { explainDescription } from '../../../src/policy/evaluation/explain.ts'
import { createRulebook } from '../../../src/policy/evaluation/rulebook.ts'
import type { Policy } from '../../../src/policy/language/model.ts'
import { parsePolicy } from '../../../src/policy/language/parse.ts'
import type { RequestDescription } from '../../../src/policy/request/describe.ts'
import { defaultRisk } from '../../../src/policy/risk/risk-signals.ts'

interface Expected {
  readonly errors?: readonly { code: string; path: string }[]
  readonly [key: string]: unknown
}
interface Case extends Omit<RequestDescription, 'request'> {
  readonly id: string
  readonly title: string
  readonly policy: unknown
  readonly request: RequestDescription['request']
  readonly expected: Expected
  readonly alsoCheck?: readonly { request: object; expected: Expected }[]
}

const file = new URL('../../cases/policy-cases.json', import.meta.url)
const { cases } = JSON.parse(readFileSync(file, 'utf8')) as { cases: readonly Case[] }

for (const given of cases) {
  t.test(`${given.id}: ${given.title}`, async t => {
    const parsed = parsePolicy(given.policy)
    if ('problems' in parsed) {
      t.strictSame(
        parsed.problems.map(({ code, path }) => ({ code, path })),
        given.expected.errors,
      )
      return
    }
    t.match(decide(parsed.policy, given), given.expected)
    for (const { request, expected } of given.alsoCheck ?? []) {
      t.match(decide(parsed.policy, { ...given, request: { ...given.request, ...request } }), expected)
    }
  })
}

function decide(policy: Policy, given: RequestDescription): object {
  const rulebook = createRulebook({
    policy: compilePolicySync(policy),
    policyName: policy.name,
    unassignedEffect: 'Deny',
    global: undefined,
    shadows: [],
    risk: defaultRisk,
  })
  const { phase, riskThreshold } = given
  const explained = explainDescription(
    rulebook,
    { ...given, ...(phase && { phase }), ...(riskThreshold && { riskThreshold }) },
    0,
  )
  if ('problem' in explained) return { refused: explained.part === 'target' ? 'invalid_target' : explained.problem }
  return explained.result
}
