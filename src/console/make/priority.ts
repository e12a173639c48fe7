/** At which priority a rule decides a request, and what it then overtakes. */
import { isMilder } from '../policies/effects.ts'
import type { Condition, Effect, Policy, RuleDraft } from '../types.ts'

type Ranked = Policy['rules'][number]

/** The lowest priority at which a rule with the effect is asked before the one that decides the request now. */
export function leastPriority({ rules }: Pick<Policy, 'rules'>, decidedBy: string | null, effect: Effect): number {
  const decides = rules.find(({ name }) => name === decidedBy)
  if (decides === undefined) return 0
  const { priority = 0 } = decides
  return isMilder(effect, decides.effect) ? priority + 1 : priority
}

/** Stricter rules that are asked behind it: where they match too, they decide no more. */
export function overtaken({ rules }: Pick<Policy, 'rules'>, { rule }: Pick<RuleDraft, 'rule'>): readonly Ranked[] {
  const { effect, priority: own = 0, conditions } = rule as unknown as Ranked
  return rules.filter(
    other =>
      other.mode !== 'shadow' &&
      isMilder(effect, other.effect) &&
      (other.priority ?? 0) < own &&
      !excludes(conditions, other.conditions),
  )
}

const comparedFields = ['input.method', 'input.origin', 'agent.id']

/** Whether no request fits both: they want different values of one field. */
function excludes(own: readonly Condition[], others: readonly Condition[]): boolean {
  return comparedFields.some(field => {
    const [mine, theirs] = [wantedOf(own, field), wantedOf(others, field)]
    return mine !== undefined && theirs !== undefined && mine !== theirs
  })
}

function wantedOf(conditions: readonly Condition[], field: string): string | undefined {
  const found = conditions.find(one => one.field === field && one.operator === 'eq')
  return found && String(found.value).toLowerCase()
}
