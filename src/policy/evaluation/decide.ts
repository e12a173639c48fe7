import { type ModelNames, modelNames } from '../language/fields/llm.ts'
import { type McpNames, mcpNames } from '../language/fields/mcp.ts'
import { type Effect, stricter } from '../language/model.ts'
import { Facts } from '../request/facts.ts'
import type { RequestBody, RequestHead } from '../request/input.ts'
import { mcpMismatch } from '../request/mcp-heads.ts'
import { RiskAssessment } from '../risk/risk.ts'
import { EvaluationTurns } from '../turns/evaluation.ts'
import type { Decision, DecisionSource, NeedBody } from './decision.ts'
import { type DecisionOutcome, decisionOf, failedDecision } from './record.ts'
import type { Rulebook } from './rulebook.ts'
import { effectBits, type RuleWalk, walk, walkWithoutPolicy } from './walk.ts'

/**
 * Decides from the head of a request, or asks for its body. Never throws: what cannot be decided is denied.
 *
 * The order: the guardrail of the gateway, the agent's policy (or what applies without one), the stricter of both,
 * then the risk threshold, which only turns Allow into Hitl.
 */
export function decideHead(rulebook: Rulebook, request: RequestHead): Decision | NeedBody {
  try {
    const found = evaluateHead(rulebook, request)
    return 'need' in found ? found : decisionOf(found)
  } catch (error) {
    return failedDecision(rulebook, 'head', error)
  }
}

/** Longer bodies, bytes, wait for their turn before they are looked at. */
const shortBody = 32_768
/** Bodies up to this length take one turn; its steps. */
const shortestBody = 1_024
const stepsOfShortest = 1_024

/**
 * Decides with the body in turns of the event loop. Of what `need` came from, only what waited is evaluated. Each turn takes a few milliseconds at most, for any length and content
 * of the body.
 */
export class BodyDecision {
  /** Length of the body. */
  readonly bytes: number
  readonly #rulebook: Rulebook
  readonly #request: RequestHead
  readonly #need: NeedBody | undefined
  readonly #body: RequestBody
  readonly #turns: EvaluationTurns | undefined
  #evaluation: Evaluation | undefined

  constructor(rulebook: Rulebook, request: RequestHead, need: NeedBody | undefined, body: RequestBody) {
    this.bytes = body.bytes.length
    this.#rulebook = rulebook
    this.#request = request
    this.#need = need
    this.#body = body
    this.#turns = this.bytes > shortestBody ? new EvaluationTurns() : undefined
  }

  /** Whether the first turn may take long. */
  get isLong(): boolean {
    return this.bytes > shortBody
  }

  /** Steps that the last turn took. */
  get steps(): number {
    return this.#turns?.steps ?? stepsOfShortest
  }

  /** What its message is, if a rule has read it. */
  get names(): MessageNames {
    const facts = this.#evaluation?.facts
    return { mcp: mcpNames(facts?.body?.read), llm: facts && modelNames(facts) }
  }

  /** Undefined when another turn is needed. Never throws. */
  takeTurn(): Decision | undefined {
    try {
      // Done outside of the turns, which would remember values that were unknown at the head.
      this.#evaluation ??= withBody(evaluationAtHead(this.#rulebook, this.#request, this.#need), this.#body)
      const evaluation = this.#evaluation
      const decide = () => decisionOf(evaluateBody(evaluation))
      const decision = this.#turns === undefined ? decide() : this.#turns.take(decide)
      if (decision !== undefined) evaluation.facts.body?.release()
      return decision
    } catch (error) {
      return failedDecision(this.#rulebook, 'body', error)
    }
  }
}

/** Names in a body that a rule read, for traces. */
export interface MessageNames {
  readonly mcp: McpNames | undefined
  readonly llm: ModelNames | undefined
}

/** A request with what the policies say about it so far. */
interface Evaluation {
  readonly rulebook: Rulebook
  readonly facts: Facts
  readonly ofAgent: RuleWalk
  readonly global: RuleWalk | undefined
}

/** Asks for the body, and keeps what was found at the head. */
export class PendingDecision implements NeedBody {
  readonly need = 'body'
  readonly evaluation: Evaluation
  constructor(evaluation: Evaluation) {
    this.evaluation = evaluation
  }

  get pending(): readonly string[] {
    const { ofAgent, global } = this.evaluation
    return [...(global?.pending ?? []), ...ofAgent.pending].map(rule => rule.rule.name)
  }

  get otherwise(): string | null {
    return this.evaluation.ofAgent.last?.rule.name ?? null
  }
}

/** The evaluation of the head; repeated when `need` did not come from `decideHead`. */
function evaluationAtHead(rulebook: Rulebook, request: RequestHead, need: NeedBody | undefined): Evaluation {
  return need instanceof PendingDecision ? need.evaluation : evaluatePolicies(rulebook, request)
}

export function withBody(evaluation: Evaluation, body: RequestBody): Evaluation {
  const { risk } = evaluation.rulebook
  return { ...evaluation, facts: evaluation.facts.withBody(body, new RiskAssessment(risk)) }
}

function evaluatePolicies(rulebook: Rulebook, request: RequestHead): Evaluation {
  const facts = new Facts(request, new RiskAssessment(rulebook.risk))
  const ofAgent = walkOfAgent(rulebook, facts)
  const global = rulebook.global === undefined ? undefined : walk(rulebook.global, facts)
  return { rulebook, facts, ofAgent, global }
}

function walkOfAgent(rulebook: Rulebook, facts: Facts): RuleWalk {
  if (rulebook.policy !== undefined) return walk(rulebook.policy, facts)
  if (rulebook.policyName === null) return walkWithoutPolicy(rulebook.unassignedEffect, 'unassigned')
  return walkWithoutPolicy('Deny', 'policy-missing')
}

/** The outcome from the head of a request, or that the body is needed. */
export function evaluateHead(rulebook: Rulebook, request: RequestHead): DecisionOutcome | PendingDecision {
  const evaluation = evaluatePolicies(rulebook, request)
  const { ofAgent, global, facts } = evaluation
  const differing = facts.mcp === undefined ? undefined : differingHeads(evaluation, 'head')
  if (differing !== undefined) return differing
  const outcomes = global === undefined ? ofAgent.outcomes : combine(global.outcomes, ofAgent.outcomes)
  const effect = only(outcomes)
  if (effect === undefined) return new PendingDecision(evaluation)
  // The claims in the head of an MCP request can only lead to a refusal, until the body agrees with them.
  if (facts.mcp !== undefined && effect !== 'Deny') return new PendingDecision(evaluation)
  if (effect !== 'Deny' && ofAgent.opensSettings) return new PendingDecision(evaluation)
  const outcome = outcomeOf(evaluation, effect, 'head')
  if (outcome === undefined) return new PendingDecision(evaluation)
  // Which rule holds a request, and so the terms of its review, may depend on the body; it is stored for review anyway.
  return outcome.effect === 'Hitl' && request.contentLength !== 0 ? new PendingDecision(evaluation) : outcome
}

/** The outcome of a request with its body; only the rules that waited are evaluated. */
export function evaluateBody(evaluation: Evaluation): DecisionOutcome {
  const { rulebook, facts, ofAgent, global } = evaluation
  const differing = facts.mcp === undefined ? undefined : differingHeads(evaluation, 'body')
  if (differing !== undefined) return differing
  const whole: Evaluation = { rulebook, facts, ofAgent: ofAgent.withBody(facts), global: global?.withBody(facts) }
  const effect = whole.global === undefined ? whole.ofAgent.effect : stricter(whole.global.effect, whole.ofAgent.effect)
  const outcome = outcomeOf(whole, effect, 'body')
  if (outcome === undefined) throw new Error('cannot happen: undecided with the body known')
  return outcome
}

/** The refusal of a request whose MCP fields in the head are malformed, or not those of its body. */
function differingHeads(
  { rulebook, facts, ofAgent, global }: Evaluation,
  phase: 'head' | 'body',
): DecisionOutcome | undefined {
  const { mcp, body } = facts
  if (mcp === undefined || (body === undefined && mcp.malformed === undefined)) return undefined
  const differs = mcpMismatch(mcp, body?.kind === 'json' ? body.value : undefined)
  if (differs === undefined) return undefined
  const evaluated = ofAgent.evaluated + (global?.evaluated ?? 0)
  return { effect: 'Deny', source: 'mcp-mismatch', phase, rulebook, facts, walk: ofAgent, ofAgent, evaluated, differs }
}

const highestScore = 1

/** Undefined when the body may still bring the risk above the threshold. */
function outcomeOf(evaluation: Evaluation, effect: Effect, phase: 'head' | 'body'): DecisionOutcome | undefined {
  const { rulebook, facts, ofAgent, global } = evaluation
  const byGlobal = global !== undefined && effect !== 'Allow' && isDecider(global, ofAgent, effect)
  const walk = byGlobal ? global : ofAgent
  const evaluated = ofAgent.evaluated + (global?.evaluated ?? 0)
  const found: DecisionOutcome = {
    effect,
    source: sourceOf(walk, byGlobal),
    phase,
    rulebook,
    facts,
    walk,
    ofAgent,
    evaluated,
  }
  const { threshold } = rulebook.risk
  if (effect === 'Allow' && !ofAgent.riskExempt && threshold < highestScore) {
    const { low, high } = facts.risk.against(threshold, facts)
    if (low > threshold) return { ...found, effect: 'Hitl', source: 'risk' }
    if (high > threshold) return undefined
  }
  return found
}

/** Whether the guardrail made the effect. If only the agent's own policy has decided, that one explains more. */
function isDecider(global: RuleWalk, ofAgent: RuleWalk, effect: Effect): boolean {
  if ((global.outcomes & effectBits[effect]) === 0) return false
  return global.isDecided || !(ofAgent.isDecided && ofAgent.effect === effect)
}

function sourceOf(decider: RuleWalk, byGlobal: boolean): DecisionSource {
  if (!decider.isDecided) return 'regardless-of-body'
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
