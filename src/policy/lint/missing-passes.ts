import type { CompiledRule } from '../evaluation/rule.ts'
import { fieldOf, operatorOf } from '../language/condition.ts'
import type { Condition, Rule } from '../language/model.ts'
import { isNegation } from '../language/operators/operators.ts'
import { readWords } from '../language/operators/values.ts'
import type { DescribedRequest } from '../request/describe.ts'
import { isPlaced, type RequestDraft } from './draft.ts'
import { type Examined, factsOf, holds } from './examined.ts'
import { type ConditionLeaf, type LintWarning, leavesOf } from './warning.ts'
import { draftOf, passGuard, requestOf } from './witness.ts'

/** Work for one policy, in rules that are asked, so that a large one is checked in seconds. */
const maxWork = 400_000
/** Work that making up a request takes. */
const workOfRequest = 40

/** A request without a field of the body, which a rule compares, and the Allow rule that lets it pass. */
export interface Passing {
  readonly rule: Rule
  readonly leaf: ConditionLeaf
  readonly allowedBy: Rule
  /** The request with the field, which the rule decides. */
  readonly whole: DescribedRequest
  /** The same without it. */
  readonly request: DescribedRequest
}

/** Warnings about Deny and Hitl rules that an agent avoids when it leaves a field out. */
export function missingPassesWarnings(examined: Examined): LintWarning[] {
  return passingRequests(examined).map(({ rule, leaf, allowedBy, request: { head } }) => {
    const { field } = leaf.condition
    const example = `${head.method} ${head.url}`
    const name = JSON.stringify(allowedBy.name)
    const remedy = `allow only what has ${field}, or add a ${rule.effect} rule for ${field} notExists`
    const message = `without ${field} a request is allowed by rule ${name}, such as ${example}: ${remedy}`
    return { code: 'W_MISSING_PASSES', path: leaf.path, rule: rule.name, message }
  })
}

/**
 * One for each Deny or Hitl rule and field. Each is shown by two requests that differ in the field alone: the rule decides
 * the one that has it, the Allow rule the other.
 */
export function passingRequests(examined: Examined): readonly Passing[] {
  const { rules } = examined.compiled
  const search = { examined, left: maxWork }
  const allows = new AllowRules(rules)
  const found: Passing[] = []
  for (const [place, compiled] of rules.entries()) {
    if (search.left <= 0) {
      examined.leaveOut(place, 'W_MISSING_PASSES')
      break
    }
    if (compiled.effect === 'Allow') continue
    const leaves = comparedFields(compiled.rule, examined.pathOf(compiled.rule))
    if (leaves.length === 0) continue
    const below = allows.below(compiled)
    found.push(...leaves.flatMap(leaf => passingRequest(search, compiled, leaf, below) ?? []))
  }
  return found
}

/** Conditions that compare a field of the body which a request may leave out, one for each field. */
function comparedFields(rule: Rule, path: string): readonly ConditionLeaf[] {
  const found = new Map<string, ConditionLeaf>()
  for (const leaf of leavesOf(rule, path)) {
    if (!leaf.inverted && compares(leaf.condition) && !found.has(leaf.condition.field))
      found.set(leaf.condition.field, leaf)
  }
  return [...found.values()]
}

/** Questions about the presence are not meant here; nor is a search for what must not be there. */
const otherQuestions = ['exists', 'isEmpty', 'typeIs', 'detects', 'contains']

function compares(condition: Condition): boolean {
  const { kind } = fieldOf(condition)
  const operator = operatorOf(condition)
  const named = kind.phase === 'body' && (kind.below === 'any' || condition.field === 'llm.maxTokens')
  return named && !isNegation(operator, condition.value) && !otherQuestions.includes(operator.form.name)
}

interface WitnessSearch {
  readonly examined: Examined
  /** Work that may still be done. */
  left: number
}

function passingRequest(
  search: WitnessSearch,
  compiled: CompiledRule,
  leaf: ConditionLeaf,
  allows: readonly CompiledRule[],
): Passing | undefined {
  const { rule } = compiled
  const conditions = rule.conditions
  for (const { rule: allow } of allows) {
    // Where both name a value, the last one stays.
    for (const nodes of [
      [...allow.conditions, ...conditions],
      [...conditions, ...allow.conditions],
    ]) {
      if (search.left <= 0) return undefined
      search.left -= workOfRequest
      const draft = draftOf(nodes)
      const found = draft && passes(search, compiled, draft, leaf.condition.field)
      if (found !== undefined) return { rule, leaf, ...found }
    }
  }
  return undefined
}

/** Guards of other rules that a draft may have to satisfy. */
const maxGuards = 4

/** The request of the draft without the field, if it is allowed and the rule decides the one with the field. */
function passes(
  search: WitnessSearch,
  compiled: CompiledRule,
  draft: RequestDraft,
  field: string,
): Pick<Passing, 'allowedBy' | 'whole' | 'request'> | undefined {
  if (!isPlaced(draft, field)) return undefined
  for (let guards = 0; guards < maxGuards; guards++) {
    const whole = requestOf(draft)
    const request = requestOf(draft, field)
    if (whole === undefined || request === undefined) return undefined
    const facts = factsOf(whole)
    if (!holds(compiled, facts)) return undefined
    const { last: decider, evaluated } = search.examined.walk(factsOf(request))
    search.left -= evaluated
    if (decider?.effect === 'Allow') {
      return search.examined.walk(facts).last === compiled ? { allowedBy: decider.rule, whole, request } : undefined
    }
    if (decider === undefined || !passGuard(draft, decider.rule)) return undefined
  }
  return undefined
}

/** The Allow rules of a policy, by the hosts that they name. */
class AllowRules {
  readonly #ofHost = new Map<string, CompiledRule[]>()
  readonly #ofAny: CompiledRule[] = []
  readonly #all: readonly CompiledRule[]

  constructor(rules: readonly CompiledRule[]) {
    this.#all = rules.filter(({ effect }) => effect === 'Allow')
    for (const rule of this.#all) {
      const hosts = hostsOf(rule.rule)
      if (hosts === undefined) this.#ofAny.push(rule)
      for (const host of hosts ?? []) {
        const known = this.#ofHost.get(host)
        if (known === undefined) this.#ofHost.set(host, [rule])
        else known.push(rule)
      }
    }
  }

  /** Those that are asked after a rule, and may match what it matches. */
  below({ rule, rank }: CompiledRule): readonly CompiledRule[] {
    const hosts = hostsOf(rule)
    const found =
      hosts === undefined ? this.#all : [...hosts.flatMap(host => this.#ofHost.get(host) ?? []), ...this.#ofAny]
    return found.filter(allow => allow.rank > rank)
  }
}

/** The hosts that a rule names, lower case; undefined: it may match any. */
function hostsOf({ conditions }: Rule): readonly string[] | undefined {
  for (const node of conditions) {
    if (!('field' in node) || !/^input\.(?:origin|host)$/.test(node.field)) continue
    const words = node.operator === 'eq' ? [node.value] : node.operator === 'in' ? readWords(node.value) : undefined
    if (words !== undefined) return words.map(word => word.toLowerCase().replace(/^.*:\/\/|:\d+$/g, ''))
  }
  return undefined
}
