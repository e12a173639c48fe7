/**
 * The numbers of the last hour in steps of 10 s and of the last day in steps of 5 min, for plots. In memory: some hundred
 * kilobytes, and lost with a restart.
 */
import { refusalKinds } from '../base/refusal-kinds.ts'
import type { Family, Histogram } from './family.ts'
import { decisions, duration, effectLabels, llmCost, overhead, type RequestKind, requests } from './layout.ts'
import type { Totals } from './metrics.ts'

/** Numbers that are read, not counted. */
export interface Gauges {
  /** Requests that wait for a reviewer. */
  readonly pending: number
  /** How long the oldest of them has waited, seconds. */
  readonly oldestSeconds: number
  readonly circuitsOpen: number
  readonly inFlight: number
}

/** One number for each step, oldest first; null where nothing happened that has one. */
type Series = readonly (number | null)[]

export interface Plots {
  readonly stepSeconds: number
  /** End of the newest step, wall clock milliseconds. */
  readonly until: number
  readonly requests: Readonly<Record<TrafficOutcome, Series>>
  readonly decisions: Readonly<Record<string, Series>>
  /** Of calls of models, in Metering:Currency. */
  readonly cost: Series
  /** From the head of a request to the last byte of its answer, milliseconds; without streams and waits for people. */
  readonly whole: Percentiles
  /** The part of the gateway, until the request was handed to its upstream, milliseconds. */
  readonly gateway: Percentiles
  readonly gauges: Readonly<Record<keyof Gauges, Series>>
}

interface Percentiles {
  readonly p50: Series
  readonly p99: Series
}

export const ranges = { hour: { stepMs: 10_000, steps: 360 }, day: { stepMs: 300_000, steps: 288 } } as const
export type TimeRange = keyof typeof ranges

const outcomes = ['forwarded', 'suspended', 'denied', 'limited', 'refused', 'failed', 'aborted'] as const
type TrafficOutcome = (typeof outcomes)[number]
const gaugeNames = ['pending', 'oldestSeconds', 'circuitsOpen', 'inFlight'] as const

/** Outcomes of requests as people group them. */
const groups: Readonly<Record<string, TrafficOutcome>> = {
  ...{ forwarded: 'forwarded', answered: 'forwarded', suspended: 'suspended', aborted: 'aborted', broken: 'failed' },
  ...Object.fromEntries(Object.entries(refusalKinds).map(([code, { status }]) => [code, groupOf(code, status)])),
}

function groupOf(code: string, status: number): TrafficOutcome {
  if (['policy_denied', 'policy_error', 'egress_denied', 'hitl_denied'].includes(code)) return 'denied'
  if (status === 429) return 'limited'
  return status >= 500 ? 'failed' : 'refused'
}

/** Counts that only grow. */
interface Counts {
  readonly requests: ReadonlyMap<string, number>
  readonly decisions: ReadonlyMap<string, number>
  readonly cost: number
  readonly whole: readonly number[]
  readonly gateway: readonly number[]
}

interface HistoryStep {
  readonly requests: Readonly<Record<TrafficOutcome, number>>
  readonly decisions: Readonly<Record<string, number>>
  readonly cost: number
  readonly whole: readonly [p50: number | null, p99: number | null]
  readonly gateway: readonly [p50: number | null, p99: number | null]
  readonly gauges: Gauges
}

export function createHistory() {
  const rings = { hour: new Ring(ranges.hour), day: new Ring(ranges.day) }
  return {
    /** Call about every second; takes a step when one is over. */
    sample(now: number, totals: () => Totals, gauges: Gauges) {
      let read: Counts | undefined
      const counts = () => {
        read ??= countsOf(totals())
        return read
      }
      for (const ring of Object.values(rings)) ring.sample(now, counts, gauges)
    },
    plots: (range: TimeRange) => rings[range].plots(),
  }
}

class Ring {
  readonly #stepMs: number
  readonly #max: number
  readonly #steps: HistoryStep[] = []
  /** Counts at the end of the newest step. */
  #counts: Counts | undefined
  #until = 0
  /** Highest since then. */
  #gauges: Gauges | undefined

  constructor({ stepMs, steps }: { readonly stepMs: number; readonly steps: number }) {
    this.#stepMs = stepMs
    this.#max = steps
  }

  sample(now: number, counts: () => Counts, gauges: Gauges): void {
    this.#gauges = highest(this.#gauges, gauges)
    const until = Math.floor(now / this.#stepMs) * this.#stepMs
    const before = this.#counts
    // After the clock was set back, the step goes on.
    if (before !== undefined && until <= this.#until) return
    this.#counts = counts()
    if (before !== undefined)
      this.#add(stepOf(before, this.#counts, this.#gauges), (until - this.#until) / this.#stepMs)
    this.#until = until
    this.#gauges = undefined
  }

  /** @param over number of steps that are over; more than one after the process stood still */
  #add(step: HistoryStep, over: number): void {
    for (let missed = Math.min(over, this.#max) - 1; missed > 0; missed--) this.#steps.push(emptyStep)
    this.#steps.push(step)
    this.#steps.splice(0, this.#steps.length - this.#max)
  }

  plots(): Plots {
    const series = (read: (step: HistoryStep) => number | null): Series => this.#steps.map(read)
    const all = <N extends string>(names: readonly N[], read: (step: HistoryStep, name: N) => number) =>
      // The names are those of N.
      Object.fromEntries(names.map(name => [name, series(step => read(step, name))])) as Record<N, Series>
    const percentiles = (of: 'whole' | 'gateway') => ({
      p50: series(step => step[of][0]),
      p99: series(step => step[of][1]),
    })
    return {
      stepSeconds: this.#stepMs / 1_000,
      until: this.#until,
      requests: all(outcomes, (step, name) => step.requests[name]),
      decisions: all(Object.keys(effectLabels), (step, name) => step.decisions[name] ?? 0),
      cost: series(step => step.cost),
      whole: percentiles('whole'),
      gateway: percentiles('gateway'),
      gauges: all(gaugeNames, (step, name) => step.gauges[name]),
    }
  }
}

// The names are those of Outcome.
const none = Object.fromEntries(outcomes.map(outcome => [outcome, 0])) as Record<TrafficOutcome, number>
const emptyStep: HistoryStep = {
  requests: none,
  decisions: {},
  cost: 0,
  whole: [null, null],
  gateway: [null, null],
  gauges: { pending: 0, oldestSeconds: 0, circuitsOpen: 0, inFlight: 0 },
}

function highest(before: Gauges | undefined, now: Gauges): Gauges {
  const all = gaugeNames.map(name => [name, Math.max(before?.[name] ?? 0, now[name])])
  // The names are those of Gauges.
  return Object.fromEntries(all) as unknown as Gauges
}

const countsOf = (totals: Totals): Counts => ({
  requests: mapOf(totals, requests),
  decisions: decisionsOf(totals),
  cost: mapOf(totals, llmCost).get('') ?? 0,
  whole: countsIn(totals, duration, 'plain' satisfies RequestKind),
  gateway: countsIn(totals, overhead, ''),
})

/** By effect, as the API names it. */
function decisionsOf(totals: Totals): ReadonlyMap<string, number> {
  const counted = mapOf(totals, decisions)
  return new Map(Object.entries(effectLabels).map(([effect, label]) => [effect, counted.get(label) ?? 0]))
}

const countsIn = (totals: Totals, histogram: Histogram, value: string): readonly number[] =>
  new Map(totals.ofHistogram(histogram)).get(value)?.counts ?? []

const mapOf = (totals: Totals, family: Family) => new Map(totals.of(family))

function stepOf(before: Counts, after: Counts, gauges: Gauges): HistoryStep {
  const grouped = { ...none }
  for (const [outcome, total] of after.requests) {
    grouped[groups[outcome] ?? 'refused'] += total - (before.requests.get(outcome) ?? 0)
  }
  return {
    requests: grouped,
    decisions: Object.fromEntries(
      [...after.decisions].map(([effect, total]) => [effect, total - (before.decisions.get(effect) ?? 0)]),
    ),
    cost: after.cost - before.cost,
    whole: percentilesOf(duration, before.whole, after.whole),
    gateway: percentilesOf(overhead, before.gateway, after.gateway),
    gauges,
  }
}

function percentilesOf(
  { bounds }: Histogram,
  before: readonly number[],
  after: readonly number[],
): HistoryStep['whole'] {
  const counts = after.map((count, bucket) => count - (before[bucket] ?? 0))
  return [percentile(bounds, counts, 0.5), percentile(bounds, counts, 0.99)]
}

/** Milliseconds, between the bounds of the bucket in proportion; null of nothing. */
export function percentile(bounds: readonly number[], counts: readonly number[], share: number): number | null {
  const all = counts.reduce((sum, count) => sum + count, 0)
  if (all === 0) return null
  let rest = all * share
  for (const [bucket, count] of counts.entries()) {
    if (rest > count) {
      rest -= count
      continue
    }
    const from = bounds[bucket - 1] ?? 0
    const to = bounds[bucket] ?? from
    return Math.round((from + (to - from) * (rest / count)) * 1e6) / 1e3
  }
  return null
}
