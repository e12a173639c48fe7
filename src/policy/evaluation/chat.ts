import type { Field } from '../language/fields/fields.ts'
import type { Effect } from '../language/model.ts'
import type { Facts } from '../request/facts.ts'
import { LongNumber } from '../values/numbers.ts'
import { missing } from '../values/truth.ts'
import type { ChatFact, DecisionSource } from './decision.ts'
import { shownText } from './title.ts'
import type { RuleWalk } from './walk.ts'

/** The part of an outcome that matters here. */
interface HeldOutcome {
  readonly effect: Effect
  readonly source: DecisionSource
  readonly facts: Facts
  readonly walk: RuleWalk
  readonly ofAgent: RuleWalk
}

/**
 * What a chat shows of a held request that may be approved there; null when it may not. Each rule that holds the request must
 * open it. Risk and a default never do, nor a value that cannot be shown whole: nobody approves what they do not see.
 *
 * @param fields those of the rule that holds the request, if it opens it
 */
export function chatOf(outcome: HeldOutcome, fields: readonly Field[] | undefined): readonly ChatFact[] | null {
  const { source, facts, walk, ofAgent, effect } = outcome
  if (source === 'risk' || fields === undefined || walk.policy === undefined) return null
  const isHeldTwice = walk !== ofAgent && ofAgent.isDecided && ofAgent.effect === effect
  const own = isHeldTwice ? ofAgent.last?.chatFields : []
  if (own === undefined) return null
  const { zone } = walk.policy.scope
  const shown = [...fields, ...own].map(field => factOf(field, field.read(facts, zone)))
  return shown.every(fact => fact !== undefined) ? shown : null
}

/** Undefined when its text is not all of it: a list, a secret, a long text, one with invisible characters. */
function factOf(field: Field, value: unknown): ChatFact | undefined {
  const shown = shownText(field, value)
  const isPlain = typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean'
  const whole = value instanceof LongNumber ? value.text : isPlain ? String(value) : undefined
  return value === missing || whole === shown ? { field: field.text, value: shown } : undefined
}
