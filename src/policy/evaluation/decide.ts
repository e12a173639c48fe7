import { type Effect, stricter } from '../language/model.ts'
import { Facts } from '../request/facts.ts'
import type { RequestBody, RequestHead } from '../request/input.ts'
import { RiskAssessment } from '../risk/risk.ts'
import { EvaluationTurns } from '../turns/evaluation.ts'
import type { Decision, DecisionRecord, DecisionSource, NeedBody } from './decision.ts'
import { failedDecision, fixDecision, type Outcome, recordWholly } from './record.ts'
import type { Rulebook } from './rulebook.ts'
import { effectBits, type Walk, walk, walkNowhere } from './walk.ts'

/**
 * Decides from the head of a request, or asks for its body. Never throws: what cannot be decided is denied.
 *
 * The order: the guardrail of the gateway, the agent's policy (or what applies without one), the stricter of both,
 * then the risk threshold, which only turns Allow into Hitl.
 */
export function decideHead(rulebook: Rulebook, request: RequestHead): Decision | NeedBody {
  try {
    const found = weighHead(rulebook, request)
    return 'need' in found ? found : fixDecision(found)
  } catch (error) {
    return failedDecision(rulebook, 'head', error)
  }
}

/**
 * Decides with the body. Never throws.
 *
 * @param need what `decideHead` asked with: only what waited is evaluated. Undefined: all is
 */
export function decideBody(
  rulebook: Rulebook,
  request: RequestHead,
  need: NeedBody | undefined,
  body: RequestBody,
): Decision {
  try {
    return fixDecision(weighBody(withBody(partsAtHead(rulebook, request, need), body)))
  } catch (error) {
    return failedDecision(rulebook, 'body', error)
  }
}

/** Bodies up to this length are decided on in one turn, bytes: a millisecond at most. */
const shortBody = 32_768

/**
 * The same in turns of the event loop, for bodies that may be long: each turn takes some milliseconds at most, however
 * long the body is and whatever it holds.
 */
export class BodyDecision {
  /** False when the first turn decides for sure. */
  readonly isLong: boolean
  readonly #rulebook: Rulebook
  readonly #begin: () => Parts
  readonly #turns: EvaluationTurns | undefined
  #parts: Parts | undefined

  constructor(rulebook: Rulebook, request: RequestHead, need: NeedBody | undefined, body: RequestBody) {
    this.isLong = body.bytes.length > shortBody
    this.#rulebook = rulebook
    this.#begin = () => withBody(partsAtHead(rulebook, request, need), body)
    this.#turns = this.isLong ? new EvaluationTurns() : undefined
  }

  /** Steps that the last turn took. */
  get steps(): number {
    return this.#turns?.steps ?? 0
  }

  /** Undefined when another turn is needed. Never throws. */
  takeTurn(): Decision | undefined {
    try {
      return this.#turns === undefined ? this.#decide() : this.#turns.take(() => this.#decide())
    } catch (error) {
      return failedDecision(this.#rulebook, 'body', error)
    }
  }

  #decide(): Decision {
    this.#parts ??= this.#begin()
    return fixDecision(weighBody(this.#parts))
  }
}

/** The whole record of a decision, of an Allow too: for explanations and tests. */
export function recordWhole(rulebook: Rulebook, request: RequestHead, body: RequestBody): DecisionRecord {
  const found = weighHead(rulebook, request)
  return recordWholly(found instanceof Waiting ? weighBody(withBody(found.parts, body)) : found)
}

/** One decision under way. */
interface Parts {
  readonly rulebook: Rulebook
  readonly facts: Facts
  readonly own: Walk
  readonly global: Walk | undefined
}

/** Asks for the body, and keeps what the head settled. */
export class Waiting implements NeedBody {
  readonly need = 'body'
  readonly parts: Parts
  constructor(parts: Parts) {
    this.parts = parts
  }

  get pending(): readonly string[] {
    const { own, global } = this.parts
    return [...(global?.pending ?? []), ...own.pending].map(rule => rule.rule.name)
  }

  get otherwise(): string | null {
    return this.parts.own.last?.rule.name ?? null
  }
}

/** What the head settled; worked out again when `need` is of another decision point. */
function partsAtHead(rulebook: Rulebook, request: RequestHead, need: NeedBody | undefined): Parts {
  return need instanceof Waiting ? need.parts : partsOf(rulebook, request)
}

export function withBody(parts: Parts, body: RequestBody): Parts {
  const { risk, maxJsonValues } = parts.rulebook
  return { ...parts, facts: parts.facts.withBody(body, new RiskAssessment(risk), maxJsonValues) }
}

function partsOf(rulebook: Rulebook, request: RequestHead): Parts {
  const facts = new Facts(request, new RiskAssessment(rulebook.risk))
  const own = walkOwn(rulebook, facts)
  const global = rulebook.global === undefined ? undefined : walk(rulebook.global, facts)
  return { rulebook, facts, own, global }
}

function walkOwn(rulebook: Rulebook, facts: Facts): Walk {
  if (rulebook.policy !== undefined) return walk(rulebook.policy, facts)
  if (rulebook.policyName === null) return walkNowhere(rulebook.unassignedEffect, 'unassigned')
  return walkNowhere('Deny', 'policy-missing')
}

/** What a request comes to by its head, before it is fixed as a decision. */
export function weighHead(rulebook: Rulebook, request: RequestHead): Outcome | Waiting {
  const parts = partsOf(rulebook, request)
  const { own, global } = parts
  const outcomes = global === undefined ? own.outcomes : combine(global.outcomes, own.outcomes)
  const effect = only(outcomes)
  if (effect === undefined) return new Waiting(parts)
  return outcomeOf(parts, effect, 'head') ?? new Waiting(parts)
}

/** What a request comes to with its body; only what waited is evaluated. */
export function weighBody({ rulebook, facts, own, global }: Parts): Outcome {
  const settled: Parts = { rulebook, facts, own: own.settle(facts), global: global?.settle(facts) }
  const effect = settled.global === undefined ? settled.own.effect : stricter(settled.global.effect, settled.own.effect)
  const outcome = outcomeOf(settled, effect, 'body')
  if (outcome === undefined) throw new Error('cannot happen: undecided with the body known')
  return outcome
}

const highestScore = 1

/** Undefined when the body may still bring the risk above the threshold. */
function outcomeOf(parts: Parts, effect: Effect, phase: 'head' | 'body'): Outcome | undefined {
  const { rulebook, facts, own, global } = parts
  const byGlobal = global !== undefined && effect !== 'Allow' && isDecider(global, own, effect)
  const walk = byGlobal ? global : own
  const evaluated = own.evaluated + (global?.evaluated ?? 0)
  const { threshold } = rulebook.risk
  if (effect === 'Allow' && !own.riskExempt && threshold < highestScore) {
    const { low, high } = facts.risk.against(threshold, facts)
    if (low > threshold) return { effect: 'Hitl', source: 'risk', phase, rulebook, facts, walk, evaluated }
    if (high > threshold) return undefined
  }
  return { effect, source: sourceOf(walk, byGlobal), phase, rulebook, facts, walk, evaluated }
}

/** Whether the guardrail made the effect; it is evaluated first, but a settled answer explains more. */
function isDecider(global: Walk, own: Walk, effect: Effect): boolean {
  if ((global.outcomes & effectBits[effect]) === 0) return false
  return global.settled || !(own.settled && own.effect === effect)
}

function sourceOf(decider: Walk, byGlobal: boolean): DecisionSource {
  if (!decider.settled) return 'regardless-of-body'
  return byGlobal ? 'global' : decider.source
}

const effectsByBit: readonly Effect[] = ['Allow', 'Hitl', 'Deny']

/** The one effect of a set, or undefined when there are several. */
function only(outcomes: number): Effect | undefined {
  return effectsByBit.find(effect => effectBits[effect] === outcomes)
}

/** Every effect that two independent sets can come to, the stricter one counting. */
function combine(left: number, right: number): number {
  let result = 0
  for (const one of effectsByBit) {
    if ((left & effectBits[one]) === 0) continue
    for (const other of effectsByBit) {
      if ((right & effectBits[other]) !== 0) result |= effectBits[stricter(one, other)]
    }
  }
  return result
}
