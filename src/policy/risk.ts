import type { RiskSignal } from './decision.ts'
import type { Facts, RiskSource } from './facts.ts'
import { bodySignals, headSignals, type RiskSettings, type Signal } from './risk-signals.ts'

/** Most points that the body alone can add. */
const bodyCap = 75
const fullScore = 100

/** Points gathered: `sum` of the positive ones, `largest` single one, `credit` of the negative ones (below zero). */
interface Tally {
  sum: number
  largest: number
  credit: number
}

/**
 * Risk of one request: integer points that add up to at most 100, over 100. Credits never bring the sum below the
 * largest single signal, so that nothing certain can be talked away.
 */
export class RiskAssessment implements RiskSource {
  readonly settings: RiskSettings
  #head: Tally | undefined
  #interval: { readonly low: number; readonly high: number } | undefined

  constructor(settings: RiskSettings) {
    this.settings = settings
  }

  /** Before the body arrives, `high` counts every body signal that is switched on. */
  interval(facts: Facts): { readonly low: number; readonly high: number } {
    this.#interval ??= this.#measure(facts)
    return this.#interval
  }

  #measure(facts: Facts): { readonly low: number; readonly high: number } {
    const { settings } = this
    if (settings.score !== undefined) return { low: settings.score, high: settings.score }
    this.#head ??= tally(headSignals, signal => signal.points(facts, settings))
    if (facts.body === undefined) {
      const most = tally(bodySignals, signal => signal.most(settings))
      return { low: scoreOf(this.#head), high: scoreOf(this.#head, most) }
    }
    const body = facts.body.kind === 'none' ? undefined : tally(bodySignals, signal => signal.points(facts, settings))
    const score = scoreOf(this.#head, body)
    return { low: score, high: score }
  }

  /** Every signal that gave points, largest first. */
  signals(facts: Facts): readonly RiskSignal[] {
    if (this.settings.score !== undefined) return []
    const known = facts.body === undefined ? headSignals : [...headSignals, ...bodySignals]
    const found: RiskSignal[] = []
    for (const signal of known) {
      const points = signal.points(facts, this.settings)
      if (points === 0) continue
      const detail = signal.detail?.(facts, this.settings)
      found.push(detail === undefined ? { signal: signal.name, points } : { signal: signal.name, points, detail })
    }
    return found.sort((left, right) => Math.abs(right.points) - Math.abs(left.points))
  }
}

function tally<S extends Signal>(signals: readonly S[], points: (signal: S) => number): Tally {
  const result: Tally = { sum: 0, largest: 0, credit: 0 }
  for (const signal of signals) {
    const value = points(signal)
    if (value < 0) result.credit += value
    else {
      result.sum += value
      if (value > result.largest) result.largest = value
    }
  }
  return result
}

function scoreOf(head: Tally, body?: Tally): number {
  const sum = head.sum + Math.min(bodyCap, body?.sum ?? 0) + head.credit + (body?.credit ?? 0)
  const largest = Math.max(head.largest, Math.min(bodyCap, body?.largest ?? 0))
  return Math.min(fullScore, Math.max(sum, largest)) / fullScore
}

const shown = 3

/** `risk 0.95 > 0.80: secret-in-body (aws-access-key) +60, new-host +20, 1 more`. */
export function riskReason(score: number, threshold: number, signals: readonly RiskSignal[]): string {
  const first = `risk ${score.toFixed(2)} > ${threshold.toFixed(2)}`
  if (signals.length === 0) return first
  const listed = signals.slice(0, shown).map(({ signal, points, detail }) => {
    return `${signal}${detail === undefined ? '' : ` (${detail})`} ${points < 0 ? '' : '+'}${points}`
  })
  const more = signals.length > shown ? [`${signals.length - shown} more`] : []
  return `${first}: ${[...listed, ...more].join(', ')}`
}
