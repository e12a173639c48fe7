import type { Measured } from './rounds.ts'
import { ratios, type Spread, spreadOf } from './stats.ts'
import { type Work, works } from './works.ts'

/** What one road may cost of another, at the same time. */
export interface Goal {
  readonly what: string
  readonly of: string
  readonly against: string
  readonly atMost: number
}

export const cpuGoals: readonly Goal[] = [
  { what: 'HAProxy doing the same, 100 rules', of: 'gateway', against: 'haproxy-100', atMost: 1.1 },
  { what: 'HAProxy doing the same, 1,000 rules', of: 'gateway-1000', against: 'haproxy-1000', atMost: 0.4 },
  { what: 'http-proxy, which checks nothing', of: 'gateway', against: 'http-proxy', atMost: 0.35 },
  { what: 'bare node:http and undici', of: 'gateway', against: 'bare', atMost: 1.1 },
  { what: 'on PostgreSQL, of on SQLite', of: 'postgres', against: 'gateway', atMost: 1.03 },
  { what: 'access log on, of off', of: 'gateway-log', against: 'gateway', atMost: 1.1 },
  { what: 'a rule reads 16 KiB of JSON, of none', of: 'post-body-rule', against: 'post', atMost: 1.6 },
  { what: '10,000 agents, 1,000 policies, of one', of: 'gateway-many', against: 'gateway', atMost: 1.1 },
  ...works.flatMap(goalsOf),
]

function goalsOf({ name, about, goal, unreadGoal }: Work): readonly Goal[] {
  const against = `${name}-haproxy`
  const read = { what: `${about}, of HAProxy`, of: name, against, atMost: goal }
  if (unreadGoal === undefined) return [read]
  return [read, { what: `${about} that nothing reads, of HAProxy`, of: `${name}-unread`, against, atMost: unreadGoal }]
}

/** The ratio of two roads in each of several starts of both. */
export interface Started {
  readonly goal: Goal
  readonly sliced: readonly number[]
  /** Empty where the upstream sets the pace. */
  readonly saturated: readonly number[]
}

/** The goals of some rows, each by the road that it is about; all of them without names. */
export const goalsOfRows = (rows: readonly string[] | undefined): readonly Goal[] =>
  cpuGoals.filter(({ of }) => rows?.includes(of) ?? true)

/** When both are as busy as they can be. */
const saturatedGoal: Goal = { what: 'p99 when saturated, of HAProxy', of: 'gateway', against: 'haproxy-100', atMost: 2 }

/** Longest time that the gateway works in one turn of its event loop while every connection sends 1 MiB, milliseconds. */
export const stallGoal = { road: 'post-1m', atMost: 15 }

/** Roads that are compared at the same offered load. */
export interface PacedGoal extends Goal {
  readonly figure: 'p99' | 'cpu'
}

export const pacedGoals: readonly PacedGoal[] = [
  { what: 'p99 at that load, of HAProxy', of: 'gateway', against: 'haproxy-100', atMost: 2, figure: 'p99' },
  {
    what: 'CPU time of 2 threads at that load, of 1',
    of: 'threads-2',
    against: 'threads-1',
    atMost: 1.1,
    figure: 'cpu',
  },
]

/** Resident memory under load, MiB. */
export const memoryGoals: ReadonlyMap<string, number> = new Map([
  ['gateway', 150],
  ...works.map(({ name }) => [name, 150] as const),
  ['threads-2', 220],
])

export interface Outcome {
  readonly what: string
  /** The worse of the two columns, where there are two. */
  readonly value: Spread
  readonly sliced?: Spread | undefined
  readonly saturated?: Spread | undefined
  readonly unit: 'x' | 'MiB' | 'KiB' | 'ms'
  /** The goal times the slack. */
  readonly limit: number
  readonly met: boolean
}

/** Goals that can be judged by what was measured. `slack` multiplies them, for machines that do other things too. */
export function judgeCpu(measured: readonly Measured[], slack: number): readonly Outcome[] {
  return cpuGoals.flatMap(goal => {
    const [of, against] = pairOf(goal, measured)
    if (of === undefined || against === undefined) return []
    const sliced = ratios(of.slices, against.slices)
    return outcomeOf(goal, { sliced, saturated: ratios(cpuOfRounds(of), cpuOfRounds(against)) }, slack)
  })
}

/** The same of several starts of each: one ratio a start. */
export function judgeStarts(started: readonly Started[], slack: number): readonly Outcome[] {
  return started.flatMap(({ goal, sliced, saturated }) =>
    outcomeOf({ ...goal, what: `${goal.what}, ${sliced.length} starts of each` }, { sliced, saturated }, slack),
  )
}

const cpuOfRounds = ({ rounds }: Measured): readonly number[] => rounds.map(({ cpu }) => cpu)

function pairOf(goal: Goal, measured: readonly Measured[]): readonly [Measured | undefined, Measured | undefined] {
  const named = (name: string) => measured.find(one => one.name === name)
  return [named(goal.of), named(goal.against)]
}

interface Columns {
  readonly sliced: readonly number[]
  readonly saturated: readonly number[]
}

/** A goal is held against the worse column: small slices leave the proxy idle in between, and a busy one is not. */
function outcomeOf({ what, atMost }: Goal, columns: Columns, slack: number): readonly Outcome[] {
  const [sliced, saturated] = [columns.sliced, columns.saturated].map(all =>
    all.length > 0 ? spreadOf(all) : undefined,
  )
  const worse = [sliced, saturated]
    .filter(spread => spread !== undefined)
    .sort((left, right) => right.median - left.median)[0]
  const limit = atMost * slack
  return worse === undefined
    ? []
    : [{ what, value: worse, sliced, saturated, unit: 'x', limit, met: worse.median <= limit }]
}

export function judgePaced(goal: PacedGoal, measured: readonly Measured[], slack: number): readonly Outcome[] {
  return judge({ goal, measured, figures: ({ rounds }) => rounds.map(round => round[goal.figure]), slack })
}

export function judgeSaturated(measured: readonly Measured[], slack: number): readonly Outcome[] {
  return judge({ goal: saturatedGoal, measured, figures: ({ rounds }) => rounds.map(({ p99 }) => p99), slack })
}

export function judgeStall(measured: readonly Measured[], slack: number): readonly Outcome[] {
  const road = measured.find(({ name }) => name === stallGoal.road)
  if (road === undefined) return []
  const limit = stallGoal.atMost * slack
  const { ranMs = 0, waitedMs = 0 } = road.stall ?? {}
  const what = `longest stall while 64 connections POST 1 MiB, without ${waitedMs.toFixed(0)} ms of waiting for the core`
  return [{ what, value: spreadOf([ranMs]), unit: 'ms', limit, met: ranMs <= limit }]
}

export function judgeMemory(measured: readonly Measured[], slack: number): readonly Outcome[] {
  return measured.flatMap(({ name, residentBytes, restingBytes }) => {
    const atMost = memoryGoals.get(name)
    if (atMost === undefined || residentBytes === undefined) return []
    const outcome = (what: string, bytes: number): Outcome => {
      const [value, limit] = [spreadOf([bytes / 2 ** 20]), atMost * slack]
      return { what: `resident memory ${what}, ${name}`, value, unit: 'MiB', limit, met: value.median <= limit }
    }
    const under = outcome('under load', residentBytes)
    return restingBytes === undefined ? [under] : [under, outcome('10 s later', restingBytes)]
  })
}

interface Judged {
  readonly goal: Goal
  readonly measured: readonly Measured[]
  readonly figures: (measured: Measured) => readonly number[]
  readonly slack: number
}

function judge({ goal, measured, figures, slack }: Judged): readonly Outcome[] {
  const [of, against] = pairOf(goal, measured)
  if (of === undefined || against === undefined || figures(of).length === 0) return []
  const value = spreadOf(ratios(figures(of), figures(against)))
  const limit = goal.atMost * slack
  return [{ what: goal.what, value, unit: 'x', limit, met: value.median <= limit }]
}
