import { askRule, type CompiledRule, fieldsOf } from '../evaluation/rule.ts'
import type { Node } from '../language/model.ts'
import type { Facts } from '../request/facts.ts'
import { False, True } from '../values/truth.ts'
import type { RequestDraft } from './draft.ts'
import { type Examined, factsOf, holds } from './examined.ts'
import { implies } from './implies.ts'
import { Narrowing } from './narrowing.ts'
import type { LintWarning } from './warning.ts'
import { draftOf, passGuard, requestOf, witnessOf } from './witness.ts'

/** Pairs of rules that are compared, so that a large policy is checked in seconds. */
const maxPairs = 50_000
/** Work for one policy, in rules that are asked about requests of others, for the same reason. */
const maxWork = 4_000_000
/** Work that comparing the conditions of two rules takes. */
const workOfPair = 8

/** For each rule: what the rules before it leave of it. */
interface Search {
  readonly examined: Examined
  readonly narrowing: Narrowing
  work: number
}

export interface OrderReport {
  readonly warnings: readonly LintWarning[]
  /** What it took, in rules that were asked. */
  readonly work: number
}

/**
 * Warnings about rules that follow from the rules before them.
 *
 * @param limit work after which the rest of the rules is left out
 */
export function orderWarnings(examined: Examined, limit = maxWork): OrderReport {
  const search: Search = { examined, narrowing: new Narrowing(examined.compiled), work: 0 }
  const warnings: LintWarning[] = []
  for (const place of examined.compiled.rules.keys()) {
    if (search.work >= limit) {
      examined.leaveOut(place, 'W_UNREACHABLE', 'W_WITNESS')
      break
    }
    warnings.push(...warningsAt(search, place))
  }
  return { warnings, work: search.work }
}

function warningsAt(search: Search, place: number): LintWarning[] {
  const { examined } = search
  const { rules } = examined.compiled
  const later = rules[place]!
  const { rule } = later
  if (rule.conditions.length === 0 && place < rules.length - 1) {
    return [examined.warn('W_CATCH_ALL', rule, 'matches every request: no rule after it decides')]
  }
  const draft = draftOf(rule.conditions)
  const facts = draft && witnessFacts(draft, later)
  const earlier = facts === undefined ? rules.slice(0, place) : matchingBefore(search, place, facts)
  const covering = earlier.find(candidate => covers(search, candidate, later))
  if (covering !== undefined) {
    const name = JSON.stringify(covering.rule.name)
    const message = `never decides: rule ${name} is evaluated first and matches whenever this one does`
    return [examined.warn('W_UNREACHABLE', rule, message)]
  }
  if (draft === undefined || facts === undefined || earlier.length === 0) return []
  const first = firstBefore(search, place, draft)
  if (first === undefined || first.effect === later.effect) return []
  const name = JSON.stringify(first.rule.name)
  return [examined.warn('W_WITNESS', rule, `rule ${name} decides a request made from the conditions of this one`)]
}

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
function firstBefore(search: Search, place: number, draft: RequestDraft): CompiledRule | undefined {
  const methods = draft.method === '' ? usualMethods : [draft.method]
  let first: CompiledRule | undefined
  for (const method of methods) {
    const found = firstBeyondGuards(search, place, { ...structuredClone(draft), method })
    if (found === undefined) return undefined
    first ??= found
  }
  return first
}

/** The same for one request, once it passes the guards (`notIn` and its like) that rules before it are. */
function firstBeyondGuards(search: Search, place: number, draft: RequestDraft): CompiledRule | undefined {
  const rule = search.examined.compiled.rules[place]!
  let first: CompiledRule | undefined
  for (let guards = 0; guards < maxGuards; guards++) {
    const facts = witnessFacts(draft, rule)
    if (facts === undefined) return first
    first = matchingBefore(search, place, facts)[0]
    if (first === undefined || !passGuard(draft, first.rule)) return first
  }
  return first
}

function matchingBefore(search: Search, end: number, facts: Facts): readonly CompiledRule[] {
  const { narrowing } = search
  const candidates = narrowing.before(end, facts)
  search.work += narrowing.fields + candidates.length
  return candidates.filter(rule => askRule(rule, facts) !== False)
}

/** Whether `earlier` matches in every case in which `later` does, also when that cannot be evaluated. */
function covers(search: Search, earlier: CompiledRule, later: CompiledRule): boolean {
  search.work += workOfPair
  const { scope } = search.examined.compiled
  const held = later.rule.conditions
  const implied = earlier.rule.conditions.every(wanted => held.some(given => implies(given, wanted, scope)))
  // Where the conditions of the later rule cannot be evaluated and it applies, the earlier one must apply too.
  const safe = earlier.whenUnreadable === True || later.whenUnreadable === False || held.every(isAlwaysReadable)
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
      if (++pairs > maxPairs) {
        examined.leaveOut(place, 'W_TIE_CONFLICT')
        return found
      }
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
