/** Which rules of a policy are asked for a request, and how far one had to ask until they decide. */
import type { Effect } from '../language/model.ts'
import type { Facts } from '../request/facts.ts'
import { once } from '../turns/evaluation.ts'
import { False, True } from '../values/truth.ts'
import type { CompiledPolicy } from './compile.ts'
import type { DecisionSource } from './decision.ts'
import { askRule, type CompiledRule } from './rule.ts'

/** Effects as bits, so that a set of them is a number. */
export const effectBits: Readonly<Record<Effect, number>> = { Allow: 1, Hitl: 2, Deny: 4 }

const none: readonly CompiledRule[] = []

/**
 * The result of one policy so far: the rules that wait for the body, in order, and the effect if none of them matches.
 * Without waiting rules the policy has decided.
 */
export class RuleWalk {
  /** Undefined for an agent without a policy. */
  readonly policy: CompiledPolicy | undefined
  readonly pending: readonly CompiledRule[]
  /** The rule that applies if no pending one does; undefined: `fallback`. */
  readonly last: CompiledRule | undefined
  readonly evaluated: number
  readonly #absent: Absent | undefined

  constructor(policy: CompiledPolicy | undefined, found: WalkResult) {
    this.policy = policy
    this.pending = found.pending
    this.last = found.last
    this.evaluated = found.evaluated
    this.#absent = found.absent
  }

  /** The effect if no rule matches. */
  get fallback(): Effect {
    return this.#absent?.effect ?? this.policy?.policy.default ?? 'Deny'
  }

  get source(): DecisionSource {
    if (this.#absent !== undefined) return this.#absent.source
    return this.last === undefined ? 'default' : 'rule'
  }

  get isDecided(): boolean {
    return this.pending.length === 0
  }

  /** Effect if no pending rule matches. */
  get effect(): Effect {
    return this.last === undefined ? this.fallback : this.last.effect
  }

  /** Every effect that is still possible, as bits. */
  get outcomes(): number {
    let bits = effectBits[this.effect]
    for (const rule of this.pending) bits |= effectBits[rule.effect]
    return bits
  }

  /** Whether the risk threshold is not applied to an Allow that comes of this. */
  get riskExempt(): boolean {
    if (this.last?.rule.riskExempt !== true) return false
    return this.pending.every(rule => rule.rule.riskExempt)
  }

  /** Whether the body decides which budget or credential the request gets. */
  get opensSettings(): boolean {
    return !this.isDecided && this.policy?.namesSettings === true && [this.last, ...this.pending].some(namesSetting)
  }

  /** The same with the body: only the waiting rules are evaluated. */
  withBody(facts: Facts): RuleWalk {
    if (this.isDecided) return this
    const last = this.pending.find(rule => once(rule, () => decides(rule, facts))) ?? this.last
    return new RuleWalk(this.policy, { pending: none, last, evaluated: this.evaluated + this.pending.length })
  }
}

const namesSetting = (rule: CompiledRule | undefined): boolean =>
  rule !== undefined && (rule.rule.budget !== '' || rule.rule.credential !== '')

interface WalkResult {
  readonly pending: readonly CompiledRule[]
  readonly last: CompiledRule | undefined
  readonly evaluated: number
  readonly absent?: Absent
}

/** Why there is no policy, and what applies then. */
interface Absent {
  readonly effect: Effect
  readonly source: 'unassigned' | 'policy-missing'
}

/** With the body, no value is unknown. If one were, it would count as unreadable. */
function decides(rule: CompiledRule, facts: Facts): boolean {
  const value = askRule(rule, facts)
  return value === True || (value !== False && rule.whenUnreadable === True)
}

/** The result for an agent without a policy, or whose policy does not exist. */
export function walkWithoutPolicy(effect: Effect, source: Absent['source']): RuleWalk {
  return new RuleWalk(undefined, { pending: none, last: undefined, evaluated: 0, absent: { effect, source } })
}

/** Asks the rules in order until one certainly matches; those that wait for the body are kept. */
export function walk(policy: CompiledPolicy, facts: Facts): RuleWalk {
  const { rules } = policy
  const candidates = candidatesOf(policy, facts)
  let pending: CompiledRule[] | undefined
  let evaluated = 0
  for (let place = candidates.next(); place < rules.length; place = candidates.next()) {
    const rule = rules[place]!
    evaluated++
    const value = askRule(rule, facts)
    if (value === False) continue
    if (value === True) return new RuleWalk(policy, { pending: pending ?? none, last: rule, evaluated })
    pending ??= []
    pending.push(rule)
  }
  return new RuleWalk(policy, { pending: pending ?? none, last: undefined, evaluated })
}

const past = Number.MAX_SAFE_INTEGER

/** The rules of a policy that can match a request, in order: merges the lists of the index that the request falls into. */
class Candidates {
  readonly #lists: (readonly number[])[] = []
  readonly #positions: number[] = []
  #count = 0

  begin(policy: CompiledPolicy, facts: Facts): this {
    this.#count = policy.index.collect(facts, this.#lists)
    for (let index = 0; index < this.#count; index++) this.#positions[index] = 0
    return this
  }

  /** Place of the next rule among the rules of the policy, or a number past them. A rule in several lists comes once. */
  next(): number {
    const lists = this.#lists
    const positions = this.#positions
    let least = past
    for (let index = 0; index < this.#count; index++) {
      const place = lists[index]![positions[index]!]
      if (place !== undefined && place < least) least = place
    }
    for (let index = 0; index < this.#count; index++) {
      const at = positions[index]!
      if (lists[index]![at] === least) positions[index] = at + 1
    }
    return least
  }
}

// Deciding is synchronous and asks one policy at a time, so one serves all requests.
const candidates = new Candidates()

function candidatesOf(policy: CompiledPolicy, facts: Facts): Candidates {
  return candidates.begin(policy, facts)
}

/** The rules that can match and whose rank is at most `end`. */
export function rulesBefore(policy: CompiledPolicy, facts: Facts, end: number): readonly CompiledRule[] {
  const found: CompiledRule[] = []
  candidatesOf(policy, facts)
  for (;;) {
    const rule = policy.rules[candidates.next()]
    if (rule === undefined || rule.rank > end) return found
    found.push(rule)
  }
}
