import { Memo } from '../../base/memo.ts'
import type { Facts, RiskInterval, RiskSignal, RiskSource } from '../request/facts.ts'
import type { Destination } from '../request/input.ts'
import {
  bodySignals,
  defaultRisk,
  headSignals,
  methodSignal,
  type RiskSettings,
  type Signal,
  secretSignals,
} from './risk-signals.ts'

/** Maximum of points that the body alone can add. */
const bodyCap = 75
const fullScore = 100

/**
 * Risk of one request: integer points that add up to at most 100, over 100. Credits never bring the sum below the
 * largest single signal, so that nothing certain can be talked away.
 *
 * The head is asked at once. The signals of the body are asked one after the other, the cheapest first, and only as far
 * as the answer matters.
 */
export class RiskAssessment implements RiskSource {
  readonly settings: RiskSettings
  #head: Sum | undefined
  /** Points of the signals of the body that were asked, in their order. */
  readonly #body: number[] = []
  #known: RiskInterval | undefined

  constructor(settings: RiskSettings) {
    this.settings = settings
  }

  interval(facts: Facts): RiskInterval {
    this.#ask(facts, bodySignals.length)
    return this.#bounds(facts)
  }

  against(threshold: number, facts: Facts): RiskInterval {
    for (;;) {
      const bounds = this.#bounds(facts)
      const isDecided = bounds.low > threshold || bounds.high <= threshold
      if (isDecided || !mayAsk(facts) || this.#body.length === bodySignals.length) return bounds
      this.#ask(facts, this.#body.length + 1)
    }
  }

  known(facts: Facts): RiskInterval {
    this.#ask(facts, secretSignals)
    return this.#bounds(facts)
  }

  /** Asks the first `count` signals of the body, if it is there. */
  #ask(facts: Facts, count: number): void {
    if (!mayAsk(facts) || this.settings.score !== undefined) return
    while (this.#body.length < count) {
      this.#known = undefined
      this.#body.push(bodySignals[this.#body.length]!.points(facts, this.settings))
    }
  }

  #bounds(facts: Facts): RiskInterval {
    this.#known ??= this.#measure(facts)
    return this.#known
  }

  /** The known points, plus the least and the most that the other signals can give. */
  #measure(facts: Facts): RiskInterval {
    const { score } = this.settings
    if (score !== undefined) return { low: score, high: score }
    this.#head ??= this.#sumOfHead(facts)
    if (!mayHaveBody(facts)) return { low: this.#head.score, high: this.#head.score }
    const low = new Sum(this.#head)
    const high = new Sum(this.#head)
    for (let at = 0; at < bodySignals.length; at++) {
      const { name } = bodySignals[at]!
      const asked = this.#body[at]
      low.addOfBody(asked ?? Math.min(0, this.settings.points[name]))
      high.addOfBody(asked ?? Math.max(0, this.settings.points[name]))
    }
    return { low: low.score, high: high.score }
  }

  #sumOfHead(facts: Facts): Sum {
    const sum = new Sum(sumOfOrigin(facts, this.settings))
    const ofMethod = methodSignal(facts.request.method)
    if (ofMethod !== undefined) sum.add(this.settings.points[ofMethod])
    sum.addAll(requestSignals, facts, this.settings)
    return sum
  }

  signals(facts: Facts): readonly RiskSignal[] {
    if (this.settings.score !== undefined) return []
    const found: RiskSignal[] = []
    const ofMethod = methodSignal(facts.request.method)
    const points = ofMethod === undefined ? 0 : this.settings.points[ofMethod]
    if (ofMethod !== undefined && points !== 0) found.push({ signal: ofMethod, points })
    for (let at = 0; at < headSignals.length; at++) {
      const points = headSignals[at]!.points(facts, this.settings)
      if (points !== 0) found.push(fired(headSignals[at]!, points, facts))
    }
    for (let at = 0; at < this.#body.length; at++) {
      if (this.#body[at] !== 0) found.push(fired(bodySignals[at]!, this.#body[at]!, facts))
    }
    return found.length < 2 ? found : found.sort((left, right) => Math.abs(right.points) - Math.abs(left.points))
  }
}

function fired({ name, detail: detailOf }: Signal, points: number, facts: Facts): RiskSignal {
  const detail = detailOf?.(facts)
  return detail === undefined ? { signal: name, points } : { signal: name, points, detail }
}

const originSignals = headSignals.filter(({ isOfOrigin }) => isOfOrigin === true)
const requestSignals = headSignals.filter(({ isOfOrigin }) => isOfOrigin !== true)

interface OriginSum {
  readonly class: Destination['class'] | undefined
  readonly sum: Sum
}

/** Origins whose sums are kept: they are few, and their requests many. */
const maxOrigins = 4_096
const originSums = new WeakMap<RiskSettings, Memo<string, OriginSum>>()

function sumOfOrigin(facts: Facts, settings: RiskSettings): Sum {
  const sums = originSums.get(settings) ?? new Memo<string, OriginSum>(maxOrigins)
  if (sums.size === 0) originSums.set(settings, sums)
  const { origin } = facts.request
  const kind = facts.destination?.class
  const known = sums.get(origin)
  if (known !== undefined && known.class === kind) return known.sum
  const sum = new Sum()
  sum.addAll(originSignals, facts, settings)
  sums.set(origin, { class: kind, sum })
  return sum
}

export const noRisk: RiskSource = new RiskAssessment({ ...defaultRisk, score: 0 })

/** Whether there is a body, or one may still come. */
const mayHaveBody = ({ bodySize }: Facts): boolean => bodySize !== 0

function mayAsk(facts: Facts): boolean {
  return facts.body !== undefined && mayHaveBody(facts)
}

/** Points added up. */
class Sum {
  #head = 0
  #body = 0
  #credit = 0
  #largest = 0

  /** Begins with what another has. */
  constructor(other?: Sum) {
    if (other === undefined) return
    this.#head = other.#head
    this.#body = other.#body
    this.#credit = other.#credit
    this.#largest = other.#largest
  }

  add(points: number): void {
    if (points < 0) this.#credit += points
    else this.#head += points
    if (points > this.#largest) this.#largest = points
  }

  /** In one call, since each request adds a dozen. */
  addAll(signals: readonly Signal[], facts: Facts, settings: RiskSettings): void {
    for (let at = 0; at < signals.length; at++) {
      const points = signals[at]!.points(facts, settings)
      if (points < 0) this.#credit += points
      else this.#head += points
      if (points > this.#largest) this.#largest = points
    }
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
}
