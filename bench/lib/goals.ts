import type { Measured } from './rounds.ts'
import { ratios, type Spread, spreadOf } from './stats.ts'
import { type Work, works } from './works.ts'

/** What one road may cost of another, in the same rounds. */
interface Goal {
  readonly what: string
  readonly of: string
  readonly against: string
  readonly atMost: number
}

const cpuGoals: readonly Goal[] = [
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

/** Resident memory of the gateway under load, MiB. */
const memoryGoal = { road: 'gateway', atMost: 150 }

export interface Outcome {
  readonly what: string
  readonly value: Spread
  readonly unit: 'x' | 'MiB' | 'KiB' | 'ms'
  /** The goal times the slack. */
  readonly limit: number
  readonly met: boolean
}

/** Goals that can be judged by what was measured. `slack` multiplies them, for machines that do other things too. */
export function judgeCpu(measured: readonly Measured[], slack: number): readonly Outcome[] {
  return cpuGoals.flatMap(goal => judge({ goal, measured, figures: ({ cpu }) => cpu, slack }))
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
  const bytes = measured.find(({ name }) => name === memoryGoal.road)?.residentBytes
  if (bytes === undefined) return []
  const limit = memoryGoal.atMost * slack
  const value = spreadOf([bytes / 2 ** 20])
  return [{ what: 'resident memory under load', value, unit: 'MiB', limit, met: value.median <= limit }]
}

interface Judged {
  readonly goal: Goal
  readonly measured: readonly Measured[]
  readonly figures: (measured: Measured) => readonly number[]
  readonly slack: number
}

function judge({ goal, measured, figures, slack }: Judged): readonly Outcome[] {
  const of = measured.find(({ name }) => name === goal.of)
  const against = measured.find(({ name }) => name === goal.against)
  if (of === undefined || against === undefined) return []
  const value = spreadOf(ratios(figures(of), figures(against)))
  const limit = goal.atMost * slack
  return [{ what: goal.what, value, unit: 'x', limit, met: value.median <= limit }]
}
