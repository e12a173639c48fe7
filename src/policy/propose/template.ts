import { segmentClass } from '../../base/segment-class.ts'
import type { Effect } from '../language/model.ts'
import { compilePathPattern } from '../language/operators/patterns.ts'
import type { DescribedRequest } from '../request/describe.ts'
import { type BodyValues, fewTexts, valuesOfBoth } from './field-values.ts'
import type { KeptPlace } from './kept.ts'
import { patternsOf } from './segments.ts'
import type { Shape } from './shape.ts'

/** A request that was recorded, with what came of it. */
export interface RecordedRequest {
  readonly agentId: string
  readonly request: DescribedRequest
  readonly shape: Shape
  /** Milliseconds since the epoch. */
  readonly at: number
  /** What the policies said. */
  readonly effect: Effect
  /** Status that the agent got; 0 when it got none. */
  readonly status: number
  readonly verdict: 'approved' | 'denied' | null
  readonly signals: readonly string[]
  /** Absent: it is one request. */
  readonly counted?: CountedRequests
}

/** Requests that were recorded. */
export interface Observed {
  readonly recorded: readonly RecordedRequest[]
  /** Those from which rules may be made. */
  readonly eligible: readonly RecordedRequest[]
}

/** Requests with the same shape and outcome, of which one is an example. */
export interface CountedRequests {
  readonly count: number
  /** Days since the epoch on which they came. */
  readonly days: readonly number[]
  /** Milliseconds since the epoch; the last one is `at`. */
  readonly firstAt: number
  /** Path of all of them. */
  readonly path: readonly KeptPlace[]
  /** Segments from which the pattern is made: ids that stand for their class are classes. */
  readonly segments: readonly string[]
  /** The policy and the rule that decided; a rule of null is the default. */
  readonly policy: string | null
  readonly rule: string | null
  readonly fields: BodyValues
}

const countOf = ({ counted }: RecordedRequest): number => counted?.count ?? 1

/** Requests with these signals of the risk teach nothing. */
export const badSignals: readonly string[] = ['secret-in-body', 'metadata-address', 'tool-changed', 'unreadable-body']

/** Why a request teaches nothing; undefined when rules may be made from it. */
export function whyIneligible({ status, verdict, effect, signals }: RecordedRequest): string | undefined {
  if (verdict === 'denied') return 'denied by a person'
  if (effect === 'Deny') return 'denied by a policy'
  if (effect === 'Hitl' && verdict !== 'approved') return 'held, and not approved'
  const signal = signals.find(one => badSignals.includes(one))
  if (signal !== undefined) return `risk signal ${signal}`
  return status < 200 || status >= 400 ? 'not answered with 2xx or 3xx' : undefined
}

/** Requests of one agent that a rule stands for. */
export interface Template extends Omit<Shape, 'segments'> {
  readonly agentId: string
  /** Pattern of the path, for `pathMatches`. */
  readonly pattern: string
  readonly values: readonly (readonly [field: string, texts: readonly string[]])[]
  readonly evidence: Evidence
}

export interface Evidence {
  readonly count: number
  /** Days on which it was recorded, in UTC. */
  readonly days: number
  /** Milliseconds since the epoch. */
  readonly first: number
  readonly last: number
  readonly approved: number
  /** What is known of values; of the numbers only people are told. */
  readonly fields: BodyValues
}

/**
 * The templates of what was recorded. What fits one fits a request that was recorded: same agent, origin, method and facts, no
 * further name, the same words in the path, and values of the same class elsewhere.
 *
 * @param isExact keeps every value of a path
 */
export function templatesOf(recorded: readonly RecordedRequest[], isExact: boolean): readonly Template[] {
  const alike = Map.groupBy(recorded, ({ agentId, shape: { segments: _, ...rest } }) => JSON.stringify([agentId, rest]))
  return [...alike.values()].flatMap(group => {
    const byPath = [...Map.groupBy(group, pathOf).values()]
    const segments = byPath.flatMap(ofPath => ofPath.slice(0, 1).map(segmentsOf))
    const patterns = patternsOf(segments, isExact)
    const byPattern = Map.groupBy(byPath.keys(), place => patterns[place] ?? '')
    return [...byPattern].flatMap(([pattern, places]) => {
      const ofPattern = places.flatMap(place => byPath[place] ?? [])
      return ofPattern.slice(0, 1).map(({ agentId, shape: { segments: _, ...rest } }) => {
        const evidence = evidenceOf(ofPattern)
        return { agentId, ...rest, pattern, values: fewTexts(evidence.fields, evidence), evidence }
      })
    })
  })
}

const segmentsOf = ({ shape, counted }: RecordedRequest): readonly string[] => counted?.segments ?? shape.segments
const pathOf = (one: RecordedRequest): string => segmentsOf(one).join('/')

const dayMs = 86_400_000

/** Days on which the requests came, in UTC. */
export const daysOf = (recorded: readonly RecordedRequest[]): number =>
  new Set(recorded.flatMap(({ at, counted }) => counted?.days ?? Math.floor(at / dayMs))).size

function evidenceOf(recorded: readonly RecordedRequest[]): Evidence {
  return {
    count: totalOf(recorded),
    days: daysOf(recorded),
    first: recorded.map(({ at, counted }) => counted?.firstAt ?? at).reduce((one, other) => Math.min(one, other)),
    last: recorded.map(({ at }) => at).reduce((one, other) => Math.max(one, other)),
    approved: totalOf(recorded.filter(({ verdict }) => verdict === 'approved')),
    fields: recorded.map(({ counted }) => counted?.fields ?? {}).reduce(valuesOfBoth),
  }
}

export const totalOf = (recorded: readonly RecordedRequest[]): number =>
  recorded.reduce((sum, one) => sum + countOf(one), 0)

/** What must be equal for a template to cover another one, or a request. */
export function likenessOf({ method, origin, facts, names }: Omit<Shape, 'segments'>, agentId: string): string {
  return JSON.stringify([agentId, method, origin, facts, names.map(([field]) => field)])
}

/** Whether a request fits a template of its likeness, or one of those may that it is an example of. */
export function covers({ pattern, names }: Template, { shape, counted }: RecordedRequest): boolean {
  const test = compilePathPattern(pattern)
  const wanted = pattern.slice(1).split('/')
  const path = counted?.path.map((place, at) => idLike(place, wanted[at] ?? '') ?? shape.segments[at])
  const hasPath = typeof test !== 'string' && test(`/${(path ?? shape.segments).join('/')}`)
  return hasPath && areWithin(shape.names, names)
}

/** An id of the class of a place that a segment of a pattern names; undefined when it names none. */
function idLike(place: KeptPlace, wanted: string): string | undefined {
  if (typeof place === 'string') return undefined
  return segmentClass(place[0])?.holds(wanted) === true ? wanted : undefined
}

/** Whether each of the objects has no further name. */
export function areWithin(inner: Shape['names'], outer: Shape['names']): boolean {
  return inner.every(([, names], place) => {
    const others = outer[place]![1]
    // A condition on names does not hold for an object without any.
    if (names.length === 0 || others.length === 0) return names.length === others.length
    return names.every(name => others.includes(name))
  })
}
