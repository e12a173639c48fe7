import type { DecisionRecord, RiskSignal } from './decision.ts'
import type { Facts, RiskSource } from './facts.ts'
import { bodySignals, headSignals, type RiskSettings } from './risk-signals.ts'

/** Most points that the body alone can add. */
const bodyCap = 75
const fullScore = 100

/**
 * Risk of one request: integer points that add up to at most 100, over 100. Credits never bring the sum below the
 * largest single signal, so that nothing certain can be talked away.
 */
export class RiskAssessment implements RiskSource {
  readonly settings: RiskSettings
  #interval: RiskInterval | undefined

  constructor(settings: RiskSettings) {
    this.settings = settings
  }

  /** Before the body arrives, `high` counts every body signal that is switched on. */
  interval(facts: Facts): RiskInterval {
    this.#interval ??= this.#measure(facts)
    return this.#interval
  }

  #measure(facts: Facts): RiskInterval {
    const { settings } = this
    if (settings.score !== undefined) return { low: settings.score, high: settings.score }
    const sum = new Sum()
    for (let at = 0; at < headSignals.length; at++) sum.add(headSignals[at]!.points(facts, settings))
    if (facts.body === undefined) return { low: sum.score, high: sum.scoreWith(settings) }
    if (facts.body.kind !== 'none') {
      for (const signal of bodySignals) sum.addOfBody(signal.points(facts, settings))
    }
    return { low: sum.score, high: sum.score }
  }

  /** Every signal that gave points, largest first. */
  signals(facts: Facts): readonly RiskSignal[] {
    if (this.settings.score !== undefined) return []
    const isBodyKnown = facts.body !== undefined && facts.body.kind !== 'none'
    const found: RiskSignal[] = []
    for (const signal of isBodyKnown ? [...headSignals, ...bodySignals] : headSignals) {
      const points = signal.points(facts, this.settings)
      if (points === 0) continue
      const detail = signal.detail?.(facts)
      found.push(detail === undefined ? { signal: signal.name, points } : { signal: signal.name, points, detail })
    }
    return found.sort((left, right) => Math.abs(right.points) - Math.abs(left.points))
  }
}

interface RiskInterval {
  readonly low: number
  readonly high: number
}

/** Points added up. */
class Sum {
  #head = 0
  #body = 0
  #credit = 0
  #largest = 0

  add(points: number): void {
    if (points < 0) this.#credit += points
    else this.#head += points
    if (points > this.#largest) this.#largest = points
  }

  addOfBody(points: number): void {
    if (points < 0) this.#credit += points
    else this.#body += points
    if (points > this.#largest) this.#largest = points
  }

  get score(): number {
    const sum = this.#head + Math.min(bodyCap, this.#body) + this.#credit
    return Math.min(fullScore, Math.max(sum, this.#largest)) / fullScore
  }

  /** The score when every signal of the body gives its points. */
  scoreWith({ points }: RiskSettings): number {
    const most = new Sum()
    most.#head = this.#head
    most.#credit = this.#credit
    most.#largest = this.#largest
    for (const { name } of bodySignals) most.addOfBody(Math.max(0, points[name]))
    return most.score
  }
}

const shown = 3

/** `risk 0.95 > 0.80: secret-in-body (aws-access-key) +60, new-host +20, 1 more`. */
export function riskReason({ score, threshold, signals }: NonNullable<DecisionRecord['risk']>): string {
  const first = `risk ${score.toFixed(2)} > ${threshold.toFixed(2)}`
  if (signals.length === 0) return first
  const listed = signals.slice(0, shown).map(({ signal, points, detail }) => {
    return `${signal}${detail === undefined ? '' : ` (${detail})`} ${points < 0 ? '' : '+'}${points}`
  })
  const more = signals.length > shown ? [`${signals.length - shown} more`] : []
  return `${first}: ${[...listed, ...more].join(', ')}`
}
