import { rulesBefore } from '../evaluation/candidates.ts'
import { askRule, type CompiledRule, fieldsOf } from '../evaluation/rule.ts'
import type { Node } from '../language/model.ts'
import type { Facts } from '../request/facts.ts'
import { False } from '../values/truth.ts'
import type { RequestDraft } from './draft.ts'
import { type Examined, factsOf, holds } from './examined.ts'
import { implies } from './implies.ts'
import type { LintWarning } from './warning.ts'
import { draftOf, passGuard, requestOf, witnessOf } from './witness.ts'

/** Pairs of rules that are compared, so that a large policy is checked in seconds. */
const maxPairs = 50_000
const fewRules = 500

/** Warnings about rules that follow from the rules before them. */
export function orderWarnings(examined: Examined): LintWarning[] {
  return examined.compiled.rules.flatMap((_, place) => warningsAt(examined, place))
}

function warningsAt(examined: Examined, place: number): LintWarning[] {
  const { rules } = examined.compiled
  const later = rules[place]!
  const { rule } = later
  if (rule.conditions.length === 0 && place < rules.length - 1) {
    return [examined.warn('W_CATCH_ALL', rule, 'matches every request: no rule after it decides')]
  }
  const draft = draftOf(rule.conditions)
  const facts = draft && witnessFacts(draft, later)
  const earlier = facts === undefined ? allBefore(examined, place) : matchingBefore(examined, place, facts)
  const covering = earlier.find(candidate => covers(examined, candidate, later))
  if (covering !== undefined) {
    const name = JSON.stringify(covering.rule.name)
    const message = `never decides: rule ${name} is evaluated first and matches whenever this one does`
    return [examined.warn('W_UNREACHABLE', rule, message)]
  }
  const first = draft === undefined || facts === undefined ? undefined : firstBefore(examined, place, draft)
  if (first === undefined || first.effect === later.effect) return []
  const name = JSON.stringify(first.rule.name)
  return [examined.warn('W_WITNESS', rule, `rule ${name} decides a request made from the conditions of this one`)]
}

/** Facts for which a rule certainly holds. */
function witnessFacts(draft: RequestDraft, rule: CompiledRule): Facts | undefined {
  const made = requestOf(draft)
  const facts = made && factsOf(made)
  return facts !== undefined && holds(rule, facts) ? facts : undefined
}

/** Guards of other rules that a request may have to pass. */
const maxGuards = 4

/** Methods with which the request of a rule that names none is tried. */
const usualMethods = ['', 'POST', 'DELETE']

/** The rule that decides the requests of a draft; undefined when the rule itself decides one of them. */
function firstBefore(examined: Examined, place: number, draft: RequestDraft): CompiledRule | undefined {
  const methods = draft.method === '' ? usualMethods : [draft.method]
  let first: CompiledRule | undefined
  for (const method of methods) {
    const found = firstBeyondGuards(examined, place, { ...structuredClone(draft), method })
    if (found === undefined) return undefined
    first ??= found
  }
  return first
}

/** The same for one request, once it passes the guards (`notIn` and its like) that rules before it are. */
function firstBeyondGuards(examined: Examined, place: number, draft: RequestDraft): CompiledRule | undefined {
  const rule = examined.compiled.rules[place]!
  let first: CompiledRule | undefined
  for (let guards = 0; guards < maxGuards; guards++) {
    const facts = witnessFacts(draft, rule)
    if (facts === undefined) return first
    first = matchingBefore(examined, place, facts)[0]
    if (first === undefined || !passGuard(draft, first.rule)) return first
  }
  return first
}

/** Without a request to narrow them down, rules are compared in small policies only. */
function allBefore({ compiled }: Examined, place: number): readonly CompiledRule[] {
  return place > fewRules ? [] : compiled.rules.slice(0, place)
}

function matchingBefore({ compiled }: Examined, end: number, facts: Facts): readonly CompiledRule[] {
  const candidates = rulesBefore(compiled, facts, compiled.rules[end]!.rank - 1)
  return candidates.filter(rule => askRule(rule, facts) !== False)
}

/** Whether `earlier` matches in every case in which `later` does, also when that cannot be evaluated. */
function covers({ compiled }: Examined, earlier: CompiledRule, later: CompiledRule): boolean {
  const { scope, policy } = compiled
  const held = later.rule.conditions
  const implied = earlier.rule.conditions.every(wanted => held.some(given => implies(given, wanted, scope)))
  const safe = earlier.effect !== 'Allow' || policy.onUnreadable !== 'failSafe' || held.every(isAlwaysReadable)
  return implied && safe
}

/** Plain strings of the head are always there; only of the path there may be several readings. */
function isAlwaysReadable(node: Node): boolean {
  return fieldsOf(node).every(field => field.plain !== undefined && field.kind.ofPath !== true)
}

/** Rules of one priority with different effects, for which some request meets both. */
export function tieWarnings(examined: Examined): LintWarning[] {
  const { rules } = examined.compiled
  const found: LintWarning[] = []
  let pairs = 0
  for (const [place, later] of rules.entries()) {
    for (let before = place - 1; before >= 0 && rules[before]!.rule.priority === later.rule.priority; before--) {
      const earlier = rules[before]!
      if (earlier.effect === later.effect) continue
      if (++pairs > maxPairs) return found
      if (!overlap(earlier, later)) continue
      const name = JSON.stringify(earlier.rule.name)
      const message = `same priority as rule ${name}, different effect: ${earlier.effect} wins where both match`
      found.push(examined.warn('W_TIE_CONFLICT', later.rule, message))
      break
    }
  }
  return found
}

function overlap(left: CompiledRule, right: CompiledRule): boolean {
  const made = witnessOf([...left.rule.conditions, ...right.rule.conditions])
  if (made === undefined) return false
  const facts = factsOf(made)
  return holds(left, facts) && holds(right, facts)
}
