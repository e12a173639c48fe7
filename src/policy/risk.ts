import type { RiskSignal } from './decision.ts'
import type { Facts, RiskSource } from './facts.ts'
import { bodySignals, headSignals, type RiskSettings, type Signal } from './risk-signals.ts'

/** Most points that the body alone can add. */
const bodyCap = 75
const fullScore = 100

/** A signal that gave points. */
interface Finding {
  readonly signal: Signal
  readonly points: number
}

/**
 * Risk of one request: integer points that add up to at most 100, over 100. Credits never bring the sum below the
 * largest single signal, so that nothing certain can be talked away.
 */
export class RiskAssessment implements RiskSource {
  readonly settings: RiskSettings
  /** Points of the signals of the head that were asked, by their place among them. */
  readonly #known: (number | undefined)[] = []
  #findings: readonly Finding[] | undefined
  #interval: RiskInterval | undefined

  constructor(settings: RiskSettings) {
    this.settings = settings
  }

  /** Before the body arrives, `high` counts every body signal that is switched on. */
  interval(facts: Facts): RiskInterval {
    this.#interval ??= this.#measure(facts)
    return this.#interval
  }

  /**
   * True when the score is certainly no higher than the threshold. Asks only as many signals as it takes to know that
   * all others together could not lift it, those that can most first and the costly last: most requests are far below.
   */
  staysWithin(facts: Facts): boolean {
    const { settings } = this
    const isPlain = facts.body?.kind === 'none' && settings.score === undefined && this.#interval === undefined
    if (!isPlain) return this.interval(facts).high <= settings.threshold
    const { total, order } = boundsOf(settings)
    let bound = total
    for (let next = 0; next < order.length && bound / fullScore > settings.threshold; next++) {
      const { at, most } = order[next]!
      bound -= most - Math.max(0, this.#ask(at, facts))
    }
    return Math.min(fullScore, bound) / fullScore <= settings.threshold
  }

  #measure(facts: Facts): RiskInterval {
    const { settings } = this
    if (settings.score !== undefined) return { low: settings.score, high: settings.score }
    const found = this.#find(facts)
    const low = scoreOf(found)
    if (facts.body !== undefined) return { low, high: low }
    const most = bodySignals.map(signal => ({ signal, points: settings.points[signal.name] }))
    return { low, high: scoreOf([...found, ...most]) }
  }

  #find(facts: Facts): readonly Finding[] {
    if (this.#findings !== undefined) return this.#findings
    const found: Finding[] = []
    headSignals.forEach((signal, at) => {
      const points = this.#ask(at, facts)
      if (points !== 0) found.push({ signal, points })
    })
    if (facts.body !== undefined && facts.body.kind !== 'none') {
      for (const signal of bodySignals) {
        const points = signal.points(facts, this.settings)
        if (points !== 0) found.push({ signal, points })
      }
    }
    this.#findings = found
    return found
  }

  /** Points of a signal of the head, worked out once. */
  #ask(at: number, facts: Facts): number {
    this.#known[at] ??= headSignals[at]!.points(facts, this.settings)
    return this.#known[at]
  }

  /** Every signal that gave points, largest first. */
  signals(facts: Facts): readonly RiskSignal[] {
    if (this.settings.score !== undefined) return []
    const sorted = this.#find(facts).toSorted((left, right) => Math.abs(right.points) - Math.abs(left.points))
    return sorted.map(({ signal, points }) => {
      const detail = signal.detail?.(facts)
      return detail === undefined ? { signal: signal.name, points } : { signal: signal.name, points, detail }
    })
  }
}

interface Bounds {
  /** Signals of the head by their place, with what each can add. */
  readonly order: readonly { readonly at: number; readonly most: number }[]
  readonly total: number
}

const known = new WeakMap<RiskSettings, Bounds>()

function boundsOf(settings: RiskSettings): Bounds {
  let bounds = known.get(settings)
  if (bounds === undefined) {
    const order = headSignals
      .map(({ name, times = 1, costly = false }, at) => ({ at, costly, most: settings.points[name] * times }))
      .filter(({ most }) => most > 0)
      .toSorted((left, right) => Number(left.costly) - Number(right.costly) || right.most - left.most)
    bounds = { order, total: order.reduce((sum, { most }) => sum + most, 0) }
    known.set(settings, bounds)
  }
  return bounds
}

interface RiskInterval {
  readonly low: number
  readonly high: number
}

function scoreOf(found: readonly Finding[]): number {
  let head = 0
  let body = 0
  let credit = 0
  let largest = 0
  for (const { signal, points } of found) {
    if (points < 0) credit += points
    else if (signal.ofBody) body += points
    else head += points
    if (points > largest) largest = points
  }
  const sum = head + Math.min(bodyCap, body) + credit
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
