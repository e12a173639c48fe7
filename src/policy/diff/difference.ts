import type { CompiledPolicy } from '../evaluation/compile.ts'
import { stricter } from '../language/model.ts'
import { type MilderRequest, milderRequests } from './examples.ts'
import { type ComparedRule, compareRuleSets } from './rules.ts'

export interface PolicyDifference {
  /** shown: by a request; possible: not excluded. */
  readonly wider: 'shown' | 'possible' | 'no'
  readonly rules: readonly ComparedRule[]
  readonly examples: readonly MilderRequest[]
  readonly default: { readonly before: string; readonly after: string }
}

export function differenceOf(before: CompiledPolicy, after: CompiledPolicy): PolicyDifference {
  const rules = compareRuleSets(before, after)
  const examples = milderRequests(before, after)
  const [old, now] = [before.policy.default, after.policy.default]
  const isSafe = rules.every(rule => rule.isSafe) && stricter(old, now) === now
  const wider = examples.length > 0 ? 'shown' : isSafe ? 'no' : 'possible'
  return { wider, rules, examples, default: { before: old, after: now } }
}
