/** What another policy would have made of what was recorded. */
import type { CompiledPolicy } from '../policy/evaluation/compile.ts'
import { decideMasked, type IsKnown, isAlike, type MaskedOutcome } from '../policy/evaluation/masked.ts'
import type { Effect } from '../policy/language/model.ts'
import type { LanguageOptions } from '../policy/language/parse.ts'
import { factsOf } from '../policy/lint/examined.ts'
import { leavesOf } from '../policy/lint/warning.ts'
import { type DescribedAgent, type KnownValues, requestOf, segmentsAt } from '../policy/propose/example.ts'
import { combinationsOf } from '../policy/propose/field-values.ts'
import type { KeptPlace, KeptShape } from '../policy/propose/kept.ts'
import { knownBy } from '../policy/propose/known.ts'
import type { ShapeOutcome } from '../policy/propose/outcome.ts'
import { knownBySample, requestOfSample, type SampledRequest } from '../policy/propose/sample.ts'
import { type DescribedRequest, requestFromDescription } from '../policy/request/describe.ts'
import type { ShapeCount } from '../storage/store.ts'
import { compileDocument } from './propose.ts'

/** A whole request of a shape. */
export interface OpenedSample {
  /** That of its shape. */
  readonly digest: string
  /** Milliseconds since the epoch. */
  readonly at: number
  readonly request: SampledRequest
}

/** An agent with what was recorded of it. */
export interface SimulatedAgent {
  readonly agent: DescribedAgent & { readonly id: string }
  readonly shapes: readonly ShapeCount[]
  readonly samples: readonly OpenedSample[]
  /** Document of the policy that it has; undefined: none. */
  readonly before: object | undefined
}

/** Requests of which the decision changes in the same way. */
export interface SimulatedChange {
  readonly before: Effect
  readonly after: Effect
  /** The rule that would decide; null: the default. */
  readonly rule: string | null
  readonly count: number
  /** Ids. */
  readonly agents: readonly string[]
  readonly examples: readonly SimulatedRequests[]
}

export interface SimulatedRequests {
  readonly method: string
  /** Ids are classes. */
  readonly url: string
  readonly agentId: string
  readonly shapeId: string
  readonly count: number
}

/** Requests of which the recording does not tell the decision. */
export interface UnknownRequests extends SimulatedRequests {
  /** Fields of policies that it rests on; none: no request could be made of the shape. */
  readonly fields: readonly string[]
}

export interface Simulation {
  readonly same: number
  /** They rest on something that is not recorded, such as a value in the body. */
  readonly unknown: number
  readonly changes: readonly SimulatedChange[]
  /** The most frequent of those that are not known. */
  readonly unknownExamples: readonly UnknownRequests[]
}

const maxExamples = 3
const maxUnknownExamples = 10

/** @param after document of the policy that is tried: a valid one */
export function simulate(agents: readonly SimulatedAgent[], after: object, language: LanguageOptions): Simulation {
  const tried = compileDocument(after, language)
  const compiled = new Map<string, CompiledPolicy>()
  const changes = new Map<string, Draft>()
  const unknown: UnknownRequests[] = []
  let same = 0
  for (const { agent, shapes, samples, before } of agents) {
    const compared = comparedPolicies(before && compileOnce(before, language, compiled), tried)
    const ofShape = Map.groupBy(samples, ({ digest }) => digest)
    for (const one of shapes) {
      const shape: KeptShape = JSON.parse(one.shape)
      const count = (found: Compared, times: number) => {
        const requests = {
          method: shape.method,
          url: urlOf(shape),
          agentId: agent.id,
          shapeId: one.digest,
          count: times,
        }
        if (found === 'same') same += times
        else if ('rests' in found) unknown.push({ ...requests, fields: found.rests })
        else note(changes, found, requests)
      }
      const found = compare(agent, one, compared)
      // What a shape leaves open a whole request may answer, for itself.
      const alike = found !== 'same' && 'rests' in found ? (ofShape.get(one.digest) ?? []).slice(0, one.count) : []
      for (const sample of alike) count(compareSample(agent, sample, one, compared), 1)
      if (one.count > alike.length) count(found, one.count - alike.length)
    }
  }
  return {
    same,
    unknown: unknown.reduce((sum, { count }) => sum + count, 0),
    changes: [...changes.values()].sort(byCount).map(change => ({ ...change, agents: [...change.agents] })),
    unknownExamples: unknown.sort(byCount).slice(0, maxUnknownExamples),
  }
}

const byCount = (one: { readonly count: number }, other: { readonly count: number }) => other.count - one.count

function compileOnce(document: object, language: LanguageOptions, known: Map<string, CompiledPolicy>): CompiledPolicy {
  const text = JSON.stringify(document)
  const found = known.get(text) ?? compileDocument(document, language)
  known.set(text, found)
  return found
}

interface ComparedPolicies {
  /** Undefined: none applies. */
  readonly former: CompiledPolicy | undefined
  readonly tried: CompiledPolicy
  /** Fields that their rules name: texts of others decide nothing, and each one doubles the examples. */
  readonly fields: ReadonlySet<string>
}

function comparedPolicies(former: CompiledPolicy | undefined, tried: CompiledPolicy): ComparedPolicies {
  const rules = [...(former?.policy.rules ?? []), ...tried.policy.rules]
  const fields = rules.flatMap(rule => leavesOf(rule, '').map(({ condition }) => condition.field))
  return { former, tried, fields: new Set(fields) }
}

/** How the decision changes, or the fields that this rests on. */
type Compared = 'same' | ChangedDecision | { readonly rests: readonly string[] }

type ChangedDecision = Pick<SimulatedChange, 'before' | 'after' | 'rule'>

type Draft = ChangedDecision & { count: number; agents: Set<string>; examples: SimulatedRequests[] }

function note(changes: Map<string, Draft>, how: ChangedDecision, requests: SimulatedRequests): void {
  const key = JSON.stringify(how)
  const draft: Draft = changes.get(key) ?? { ...how, count: 0, agents: new Set(), examples: [] }
  draft.count += requests.count
  draft.agents.add(requests.agentId)
  if (draft.examples.length < maxExamples) draft.examples.push(requests)
  changes.set(key, draft)
}

function compare(agent: DescribedAgent, one: ShapeCount, policies: ComparedPolicies): Compared {
  const shape: KeptShape = JSON.parse(one.shape)
  const fields = Object.fromEntries(Object.entries(one.fields).filter(([field]) => policies.fields.has(field)))
  return compareAll(examplesOf(shape, { ...one, fields }, agent), knownBy(shape, fields), one, policies)
}

/** A sample is one request: what is not known of it rests on what was hidden, or on the moment in which it came. */
function compareSample(
  agent: DescribedAgent,
  { request, at }: OpenedSample,
  one: ShapeCount,
  policies: ComparedPolicies,
): Compared {
  const described = requestOfSample(request, agent, at)
  return compareAll(described === undefined ? [] : [described], knownBySample(request), one, policies)
}

function compareAll(
  requests: readonly DescribedRequest[],
  isKnown: IsKnown,
  { outcome: text }: ShapeCount,
  { former, tried }: ComparedPolicies,
): Compared {
  const outcome: ShapeOutcome = JSON.parse(text)
  const decide = (policy: CompiledPolicy) => requests.map(one => decideMasked(policy, factsOf(one), isKnown))
  const now = decide(tried)
  const [first] = now
  if (first === undefined) return { rests: [] }
  const old = former && decide(former)
  const after = certain(now)
  if (after === undefined) {
    const isSame = old?.every((one, at) => isAlike(one, now[at]!)) === true
    return isSame ? 'same' : { rests: unknownFields(now, isKnown) }
  }
  const recorded = outcome.policy === former?.name ? outcome.effect : undefined
  const before = (old && certain(old)) ?? recorded
  if (before === undefined) return { rests: unknownFields(old ?? [], isKnown) }
  return before === after ? 'same' : { before, after, rule: first.last?.name ?? null }
}

function unknownFields(outcomes: readonly MaskedOutcome[], isKnown: IsKnown): readonly string[] {
  const rules = new Set(outcomes.flatMap(({ pending }) => pending))
  const conditions = [...rules].flatMap(rule => leavesOf(rule, '').map(({ condition }) => condition))
  return [...new Set(conditions.filter(one => !isKnown(one)).map(({ field }) => field))]
}

/** The effect of all of them; undefined when it is not the same, or rests on something that is not known. */
export function certain(outcomes: readonly MaskedOutcome[]): Effect | undefined {
  const effects = new Set(outcomes.flatMap(one => [...one.effects]))
  const [effect] = effects
  return effects.size === 1 ? effect : undefined
}

/** Requests of the shape, with each id that is known of a place and all texts that fields had; none when that is not possible. */
export function examplesOf(
  shape: KeptShape,
  { values, fields }: KnownValues,
  agent: DescribedAgent,
): readonly DescribedRequest[] {
  if (shape.path.length === 0 || values.some(known => known.length === 0)) return []
  const count = Math.max(1, ...values.map(known => known.length))
  const found = combinationsOf(fields).flatMap(some =>
    Array.from({ length: count }, (_, at) => exampleAt(shape, { values, fields: some }, at, agent)),
  )
  return found.every(one => one !== undefined) ? found : []
}

function exampleAt(
  { method, origin, path, facts, names, unfit }: KeptShape,
  { values, fields }: KnownValues,
  at: number,
  agent: DescribedAgent,
): DescribedRequest | undefined {
  const segments = segmentsAt(path, values, at)
  if (unfit === null) return requestOf({ method, origin, segments, facts, names }, agent, fields)
  const made = requestFromDescription({ request: { method, url: `${origin}/${segments.join('/')}` }, agent }, 0)
  return 'problem' in made ? undefined : made
}

const urlOf = ({ origin, path }: KeptShape): string => `${origin}/${path.map(textOf).join('/')}`
const textOf = (place: KeptPlace): string => (typeof place === 'string' ? place : `{${place[0]}}`)
