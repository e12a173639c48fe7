import type { CompiledPolicy } from '../evaluation/compile.ts'
import { formatRule, type RuleDocument } from '../language/format.ts'
import { appliesUnread, type Effect, type Rule, stricter } from '../language/model.ts'
import { implies } from '../lint/implies.ts'

/** How a rule of two policies differs. `not proved`: it may match more, fewer or other requests. */
export type RuleDifference = 'same' | 'added' | 'removed' | 'moved' | 'changed' | 'narrower' | 'wider' | 'not proved'

export interface ComparedRule {
  readonly rule: string
  readonly effect: Effect
  readonly difference: RuleDifference
  /** What changed beside the conditions: `effect Deny -> Allow`. */
  readonly changes: readonly string[]
  /** Whether it cannot make an effect milder. */
  readonly isSafe: boolean
}

/** Compares the rules of two policies by name, in the order of the new one; what was removed comes last. */
export function compareRuleSets(before: CompiledPolicy, after: CompiledPolicy): readonly ComparedRule[] {
  const old = new Map(inOrder(before).map(rule => [rule.name, rule]))
  const now = inOrder(after)
  const names = new Set(now.map(({ name }) => name))
  const moved = movedRules(
    [...old.keys()].filter(name => names.has(name)),
    now.map(({ name }) => name).filter(name => old.has(name)),
  )
  const compared = now.map(rule => {
    const former = old.get(rule.name)
    if (former === undefined) return alone(rule, 'added', rule.effect === 'Deny' || rule.mode === 'shadow')
    return compareRule({ before, after, former, rule }, moved.has(rule.name))
  })
  const gone = [...old.values()].filter(({ name }) => !names.has(name))
  return [...compared, ...gone.map(rule => alone(rule, 'removed', rule.effect === 'Allow' || rule.mode === 'shadow'))]
}

const inOrder = ({ rules, shadowRules }: CompiledPolicy): readonly Rule[] =>
  [...rules, ...shadowRules].map(({ rule }) => rule)

const alone = ({ name, effect }: Rule, difference: RuleDifference, isSafe: boolean): ComparedRule => {
  return { rule: name, effect, difference, changes: [], isSafe }
}

/** Names that stand behind another one than before. */
function movedRules(before: readonly string[], after: readonly string[]): ReadonlySet<string> {
  const place = new Map(before.map((name, index) => [name, index]))
  let highest = -1
  const moved = after.filter(name => {
    const index = place.get(name) ?? 0
    if (index < highest) return true
    highest = index
    return false
  })
  return new Set(moved)
}

interface RulePair {
  readonly before: CompiledPolicy
  readonly after: CompiledPolicy
  readonly former: Rule
  readonly rule: Rule
}

function compareRule({ before, after, former, rule }: RulePair, isMoved: boolean): ComparedRule {
  const changes = changedKeys(formatRule(former), formatRule(rule))
  const unreads = appliesUnread(before.policy, former) !== appliesUnread(after.policy, rule)
  const scoped = before.policy.timezone !== after.policy.timezone
  const conditions = scoped ? 'not proved' : compareConditions(former, rule, after)
  const difference =
    conditions !== 'same' ? conditions : changes.length > 0 || unreads ? 'changed' : isMoved ? 'moved' : 'same'
  const { name, effect } = rule
  const isMilder = stricter(former.effect, effect) !== effect || former.mode !== rule.mode
  const isSafe =
    !isMoved && !unreads && !isMilder && keepsDuties(former, rule) && isSafeFor(effect, former.effect, conditions)
  return { rule: name, effect, difference, changes, isSafe }
}

/** Whether the rule is exempt from the risk only if it was, and its requests get the same budget and credential. */
const keepsDuties = (former: Rule, rule: Rule): boolean =>
  (former.riskExempt || !rule.riskExempt) && former.budget === rule.budget && former.credential === rule.credential

/** A rule that allows fewer requests, or denies more, makes no effect milder; one that holds more may, of those denied. */
function isSafeFor(effect: Effect, former: Effect, conditions: RuleDifference): boolean {
  if (conditions === 'same') return true
  if (effect !== former) return false
  return effect === 'Allow' ? conditions === 'narrower' : effect === 'Deny' && conditions === 'wider'
}

function compareConditions(former: Rule, rule: Rule, { scope }: CompiledPolicy): RuleDifference {
  const [left, right] = [{ all: former.conditions }, { all: rule.conditions }]
  const narrower = implies(right, left, scope)
  const wider = implies(left, right, scope)
  if (narrower && wider) return 'same'
  return narrower ? 'narrower' : wider ? 'wider' : 'not proved'
}

/** Keys beside name, priority and conditions. */
function changedKeys(former: RuleDocument, rule: RuleDocument): readonly string[] {
  const values = (document: RuleDocument): Readonly<Record<string, unknown>> => ({ ...document })
  const [old, now] = [values(former), values(rule)]
  const keys = [...new Set([...Object.keys(old), ...Object.keys(now)])]
  const compared = keys.filter(key => key !== 'priority' && key !== 'conditions')
  return compared
    .filter(key => JSON.stringify(old[key]) !== JSON.stringify(now[key]))
    .map(key => `${key} ${shown(old[key])} -> ${shown(now[key])}`)
}

const shown = (value: unknown): string => (value === undefined ? '(default)' : JSON.stringify(value))
