import type { Decision, DecisionSource, Effect, NeedBody } from './decision.ts'
import { Facts } from './facts.ts'
import type { RequestBody, RequestHead } from './input.ts'
import { stricter } from './model.ts'
import { RiskAssessment } from './risk.ts'
import type { Rulebook } from './rulebook.ts'
import { failedDecision, Verdict } from './verdict.ts'
import { effectBits, type Walk, walk, walkNowhere } from './walk.ts'

export { createRulebook, type Rulebook } from './rulebook.ts'

/**
 * Decides from the head of a request, or asks for its body. Never throws: what cannot be decided is denied.
 *
 * The order: the guardrail of the gateway, the agent's policy (or what applies without one), the stricter of both,
 * then the risk threshold, which only turns Allow into Hitl.
 */
export function decideHead(rulebook: Rulebook, request: RequestHead): Decision | NeedBody {
  try {
    const facts = new Facts(request, new RiskAssessment(rulebook.risk))
    const own = walkOwn(rulebook, facts)
    const global = rulebook.global === undefined ? undefined : walk(rulebook.global, facts)
    return new Deciding({ rulebook, facts, own, global }).head()
  } catch (error) {
    return failedDecision(rulebook, 'head', error)
  }
}

/** Decides with the body, after `decideHead` asked for it; only what waited is evaluated. Never throws. */
export function decideBody(rulebook: Rulebook, request: RequestHead, need: NeedBody, body: RequestBody): Decision {
  try {
    const deciding = need instanceof Waiting ? need.deciding : startOver(rulebook, request)
    return deciding.withBody(body)
  } catch (error) {
    return failedDecision(rulebook, 'body', error)
  }
}

function startOver(rulebook: Rulebook, request: RequestHead): Deciding {
  const facts = new Facts(request, new RiskAssessment(rulebook.risk))
  const global = rulebook.global === undefined ? undefined : walk(rulebook.global, facts)
  return new Deciding({ rulebook, facts, own: walkOwn(rulebook, facts), global })
}

function walkOwn(rulebook: Rulebook, facts: Facts): Walk {
  if (rulebook.policy !== undefined) return walk(rulebook.policy, facts)
  if (rulebook.policyName === null) return walkNowhere(rulebook.unassignedEffect, 'unassigned')
  return walkNowhere('Deny', 'policy-missing')
}

/** One decision on its way. */
interface Parts {
  readonly rulebook: Rulebook
  readonly facts: Facts
  readonly own: Walk
  readonly global: Walk | undefined
}

/** Asks for the body; keeps what is settled. */
class Waiting implements NeedBody {
  readonly need = 'body'
  readonly deciding: Deciding
  constructor(deciding: Deciding) {
    this.deciding = deciding
  }

  get pending(): readonly string[] {
    const { own, global } = this.deciding.parts
    return [...(global?.pending ?? []), ...own.pending].map(rule => rule.rule.name)
  }

  get otherwise(): string | null {
    return this.deciding.parts.own.last?.rule.name ?? null
  }
}

class Deciding {
  readonly parts: Parts
  constructor(parts: Parts) {
    this.parts = parts
  }

  head(): Decision | NeedBody {
    const { own, global } = this.parts
    const outcomes = global === undefined ? own.outcomes : combine(global.outcomes, own.outcomes)
    const effect = only(outcomes)
    if (effect === undefined) return new Waiting(this)
    return this.#decide(effect, 'head') ?? new Waiting(this)
  }

  withBody(body: RequestBody): Decision {
    const { rulebook, own, global } = this.parts
    const facts = this.parts.facts.withBody(body, new RiskAssessment(rulebook.risk))
    const settled: Parts = { rulebook, facts, own: own.settle(facts), global: global?.settle(facts) }
    const effect = global === undefined ? settled.own.effect : stricter(settled.global!.effect, settled.own.effect)
    return new Deciding(settled).#decide(effect, 'body')!
  }

  /** Undefined when the body may still bring the risk above the threshold. */
  #decide(effect: Effect, phase: 'head' | 'body'): Decision | undefined {
    const { rulebook, facts, own, global } = this.parts
    const byGlobal = global !== undefined && effect !== 'Allow' && isDecider(global, own, effect)
    const decider = byGlobal ? global : own
    const evaluated = own.evaluated + (global?.evaluated ?? 0)
    const grounds = { rulebook, facts, phase, walk: decider, evaluated }
    if (effect === 'Allow' && !own.riskExempt && facts.risk.staysWithin?.(facts) !== true) {
      const { low, high } = facts.risk.interval(facts)
      if (low > rulebook.risk.threshold) return new Verdict('Hitl', 'risk', grounds)
      if (high > rulebook.risk.threshold) return undefined
    }
    return new Verdict(effect, sourceOf(decider, byGlobal), grounds)
  }
}

/** Whether the guardrail is what made the effect; it is asked first, but a settled answer explains more. */
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
