import type { Measured, Round } from './rounds.ts'
import type { Spread } from './stats.ts'
import { ratios, spreadOf } from './stats.ts'

/** What one road may cost of another, in the same rounds. */
interface Goal {
  readonly what: string
  readonly of: string
  readonly against: string
  readonly atMost: number
}

const cpuGoals: readonly Goal[] = [
  { what: 'HAProxy doing the same, 100 rules', of: 'gateway', against: 'haproxy-100', atMost: 1 },
  { what: 'HAProxy doing the same, 1,000 rules', of: 'gateway-1000', against: 'haproxy-1000', atMost: 0.5 },
  { what: 'http-proxy, which checks nothing', of: 'gateway', against: 'http-proxy', atMost: 0.35 },
  { what: 'bare node:http and undici', of: 'gateway', against: 'bare', atMost: 1.1 },
  { what: 'access log on, of off', of: 'gateway-log', against: 'gateway', atMost: 1.15 },
  { what: 'a rule reads 16 KiB of JSON, of none', of: 'post-body-rule', against: 'post', atMost: 1.6 },
  { what: '10,000 agents, 1,000 policies, of one', of: 'gateway-many', against: 'gateway', atMost: 1.1 },
]

/** Roads whose p99 is compared at the same offered load. */
export const pacedGoal: Goal = {
  what: 'p99 at the same offered load, of HAProxy',
  of: 'gateway',
  against: 'haproxy-100',
  atMost: 2,
}

export interface Outcome extends Goal {
  readonly ratio: Spread
  /** The goal times the slack. */
  readonly limit: number
  readonly met: boolean
}

/** Goals that can be judged by what was measured. `slack` multiplies them, for machines that do other things too. */
export function judgeCpu(measured: readonly Measured[], slack: number): readonly Outcome[] {
  return cpuGoals.flatMap(goal => judge({ goal, measured, figure: ({ cpu }) => cpu, slack }))
}

export function judgePaced(measured: readonly Measured[], slack: number): readonly Outcome[] {
  return judge({ goal: pacedGoal, measured, figure: ({ p99 }) => p99, slack })
}

interface Judged {
  readonly goal: Goal
  readonly measured: readonly Measured[]
  readonly figure: (round: Round) => number
  readonly slack: number
}

function judge({ goal, measured, figure, slack }: Judged): readonly Outcome[] {
  const of = measured.find(({ name }) => name === goal.of)
  const against = measured.find(({ name }) => name === goal.against)
  if (of === undefined || against === undefined) return []
  const ratio = spreadOf(ratios(of.rounds.map(figure), against.rounds.map(figure)))
  const limit = goal.atMost * slack
  return [{ ...goal, ratio, limit, met: ratio.median <= limit }]
}
