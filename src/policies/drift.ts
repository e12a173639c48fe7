/** How a policy and what its agents do have come apart. */
import type { PolicyDocument } from '../policy/language/format.ts'
import type { KeptShape } from '../policy/propose/kept.ts'
import type { ShapeOutcome } from '../policy/propose/outcome.ts'
import type { ShapeCount } from '../storage/store.ts'
import type { SimulatedRequests } from './simulate.ts'

export interface DriftedShape extends SimulatedRequests {
  /** Milliseconds since the epoch. */
  readonly lastAt: number
}

/** Decisions of a rule as it is now, over restarts and of all gateways. */
export interface RuleUsage {
  /** Null: the default. */
  readonly rule: string | null
  readonly count: number
  /** Days since the epoch, in UTC. */
  readonly lastDay: number
}

export interface RuleUse {
  /** Null: the default. */
  readonly rule: string | null
  readonly effect: string
  readonly count: number
  readonly lastAt: number | null
  /** Agents whose requests it decided. */
  readonly agents: number
  readonly approved: number
  readonly denied: number
  /** Decisions that were counted, also of requests that were not recorded. */
  readonly hits: number
}

export type Drift = ReturnType<typeof driftOf>

const maxListed = 20
const fewestApprovals = 10
const fewestAgents = 3
const fewestCount = 3
const stoppedMs = 14 * 86_400_000
/** As `narrow` names the rules for what was not recorded. */
const ofRest = /-not-seen(?:-\d+)?$/

interface ReadCount {
  readonly one: ShapeCount
  readonly shape: KeptShape
  readonly outcome: ShapeOutcome
}

/** @param counts of all agents that have the policy */
export function driftOf(
  policy: PolicyDocument,
  counts: readonly ShapeCount[],
  usage: readonly RuleUsage[],
  now: number,
) {
  const all = counts.map((one): ReadCount => ({ one, shape: JSON.parse(one.shape), outcome: JSON.parse(one.outcome) }))
  const mine = all.filter(({ outcome }) => outcome.policy === policy.name)
  const agents = new Set(mine.map(({ one }) => one.agentId)).size
  const byRule = Map.groupBy(mine, ({ outcome }) => outcome.rule)
  const hits = new Map(usage.map(({ rule, count }) => [rule, count]))
  const use = (rule: string | null, effect: string) => ({
    ...useOf(rule, effect, byRule.get(rule) ?? []),
    hits: hits.get(rule) ?? 0,
  })
  const named = policy.rules.map(({ name, effect }) => use(name, effect))
  const rules = [...named, use(null, policy.default)]
  const isUncovered = ({ outcome: { rule } }: ReadCount) => rule === null || ofRest.test(rule)
  const isStopped = ({ one }: ReadCount) => one.count >= fewestCount && one.lastAt < now - stoppedMs
  const namesOf = (fits: (use: RuleUse) => boolean) =>
    named.filter(fits).flatMap(({ rule }) => (rule === null ? [] : [rule]))
  return {
    rules,
    /** Rules that decided nothing. */
    unused: namesOf(use => use.hits === 0),
    /** The most frequent requests that no rule covers, or only one for what was not recorded before. */
    uncovered: topOf(mine.filter(isUncovered)),
    /** Rules whose requests people approve, and never deny. */
    alwaysApproved: namesOf(({ approved, denied }) => approved >= fewestApprovals && denied === 0),
    /** Rules that one of several agents uses. */
    ofOneAgent: agents < fewestAgents ? [] : namesOf(use => use.agents === 1),
    /** The most frequent requests that came no more for two weeks. */
    stopped: topOf(mine.filter(isStopped)),
  }
}

function useOf(rule: string | null, effect: string, counts: readonly ReadCount[]): Omit<RuleUse, 'hits'> {
  const sum = (verdict?: ShapeOutcome['verdict']) =>
    counts.reduce(
      (all, { one, outcome }) => all + (verdict === undefined || outcome.verdict === verdict ? one.count : 0),
      0,
    )
  return {
    ...{ rule, effect, count: sum(), approved: sum('approved'), denied: sum('denied') },
    lastAt: counts.length === 0 ? null : counts.reduce((last, { one }) => Math.max(last, one.lastAt), 0),
    agents: new Set(counts.map(({ one }) => one.agentId)).size,
  }
}

function topOf(counts: readonly ReadCount[]): readonly DriftedShape[] {
  const sorted = counts.toSorted((left, right) => right.one.count - left.one.count).slice(0, maxListed)
  return sorted.map(({ one: { agentId, digest: shapeId, count, lastAt }, shape }) => {
    const path = shape.path.map(place => (typeof place === 'string' ? place : `{${place[0]}}`)).join('/')
    return { method: shape.method, url: `${shape.origin}/${path}`, agentId, shapeId, count, lastAt }
  })
}
