/** What another policy would have made of what was recorded. */
import type { CompiledPolicy } from '../policy/evaluation/compile.ts'
import { decideMasked, isAlike, type MaskedOutcome } from '../policy/evaluation/masked.ts'
import type { Effect } from '../policy/language/model.ts'
import type { LanguageOptions } from '../policy/language/parse.ts'
import { factsOf } from '../policy/lint/examined.ts'
import { type DescribedAgent, requestOf } from '../policy/propose/example.ts'
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
  readonly examples: readonly { readonly method: string; readonly url: string; readonly count: number }[]
}

export interface Simulation {
  readonly same: number
  /** They rest on something that is not recorded, such as a value in the body. */
  readonly unknown: number
  readonly changes: readonly SimulatedChange[]
}

const maxExamples = 3

/** @param after document of the policy that is tried: a valid one */
export function simulate(agents: readonly SimulatedAgent[], after: object, language: LanguageOptions): Simulation {
  const tried = compileDocument(after, language)
  const compiled = new Map<string, CompiledPolicy>()
  const changes = new Map<string, Draft>()
  const tally = { same: 0, unknown: 0 }
  for (const { agent, shapes, samples, before } of agents) {
    const compared: ComparedPolicies = { former: before && compileOnce(before, language, compiled), tried }
    const ofShape = Map.groupBy(samples, ({ digest }) => digest)
    const count = (found: Compared | 'same' | 'unknown', times: number) => {
      if (typeof found === 'string') tally[found] += times
      else note(changes, agent.id, times, found)
    }
    for (const one of shapes) {
      const found = compare(agent, one, compared)
      // What a shape leaves open a whole request may answer, for itself.
      const alike = found === 'unknown' ? (ofShape.get(one.digest) ?? []).slice(0, one.count) : []
      for (const sample of alike) count(compareSample(agent, sample, one, compared), 1)
      count(found, one.count - alike.length)
    }
  }
  const sorted = [...changes.values()].sort((one, other) => other.count - one.count)
  return { ...tally, changes: sorted.map(change => ({ ...change, agents: [...change.agents] })) }
}

function compileOnce(document: object, language: LanguageOptions, known: Map<string, CompiledPolicy>): CompiledPolicy {
  const text = JSON.stringify(document)
  const found = known.get(text) ?? compileDocument(document, language)
  known.set(text, found)
  return found
}

/** The policy before and the one that is tried. */
interface ComparedPolicies {
  /** Undefined: none applies. */
  readonly former: CompiledPolicy | undefined
  readonly tried: CompiledPolicy
}

interface Compared {
  readonly before: Effect
  readonly after: Effect
  readonly rule: string | null
  readonly method: string
  readonly url: string
}

type Draft = Omit<SimulatedChange, 'agents' | 'examples' | 'count'> & {
  count: number
  agents: Set<string>
  examples: SimulatedChange['examples'][number][]
}

function note(changes: Map<string, Draft>, agentId: string, count: number, { method, url, ...how }: Compared): void {
  const key = JSON.stringify(how)
  const draft: Draft = changes.get(key) ?? { ...how, count: 0, agents: new Set(), examples: [] }
  draft.count += count
  draft.agents.add(agentId)
  if (draft.examples.length < maxExamples) draft.examples.push({ method, url, count })
  changes.set(key, draft)
}

function compare(
  agent: DescribedAgent,
  { shape: text, outcome: outcomeText, values }: ShapeCount,
  { former, tried }: ComparedPolicies,
): Compared | 'same' | 'unknown' {
  const shape: KeptShape = JSON.parse(text)
  const outcome: ShapeOutcome = JSON.parse(outcomeText)
  const examples = examplesOf(shape, values, agent)
  const [first] = examples
  if (first === undefined) return 'unknown'
  const isKnown = knownBy(shape)
  const decide = (policy: CompiledPolicy) => examples.map(one => decideMasked(policy, factsOf(one), isKnown))
  const now = decide(tried)
  const old = former && decide(former)
  const after = certain(now)
  if (after === undefined) return old?.every((one, at) => isAlike(one, now[at]!)) === true ? 'same' : 'unknown'
  const recorded = outcome.policy === former?.name ? outcome.effect : undefined
  const before = (old && certain(old)) ?? recorded
  if (before === undefined) return 'unknown'
  if (before === after) return 'same'
  return { before, after, rule: now[0]?.last?.name ?? null, method: first.head.method, url: urlOf(shape) }
}

/** A sample is one request: what is not known of it rests on what was hidden, or on the moment in which it came. */
function compareSample(
  agent: DescribedAgent,
  { request, at }: OpenedSample,
  { shape, outcome: outcomeText }: ShapeCount,
  { former, tried }: ComparedPolicies,
): Compared | 'same' | 'unknown' {
  const described = requestOfSample(request, agent, at)
  if (described === undefined) return 'unknown'
  const outcome: ShapeOutcome = JSON.parse(outcomeText)
  const decide = (policy: CompiledPolicy) => decideMasked(policy, factsOf(described), knownBySample(request))
  const now = decide(tried)
  const old = former && decide(former)
  const after = certain([now])
  if (after === undefined) return old !== undefined && isAlike(old, now) ? 'same' : 'unknown'
  const before = (old && certain([old])) ?? (outcome.policy === former?.name ? outcome.effect : undefined)
  if (before === undefined) return 'unknown'
  if (before === after) return 'same'
  const url = urlOf(JSON.parse(shape))
  return { before, after, rule: now.last?.name ?? null, method: request.method, url }
}

/** The effect of all of them; undefined when it is not the same, or rests on something that is not known. */
export function certain(outcomes: readonly MaskedOutcome[]): Effect | undefined {
  const effects = new Set(outcomes.flatMap(one => [...one.effects]))
  const [effect] = effects
  return effects.size === 1 ? effect : undefined
}

/** Requests of the shape, one for each id that is known of a place; none when that is not possible. */
export function examplesOf(
  shape: KeptShape,
  values: ShapeCount['values'],
  agent: DescribedAgent,
): readonly DescribedRequest[] {
  if (shape.path.length === 0 || values.some(known => known.length === 0)) return []
  const count = Math.max(1, ...values.map(known => known.length))
  const found = Array.from({ length: count }, (_, at) => exampleAt(shape, values, at, agent))
  return found.every(one => one !== undefined) ? found : []
}

function exampleAt(
  { method, origin, path, facts, names, unfit }: KeptShape,
  values: ShapeCount['values'],
  at: number,
  agent: DescribedAgent,
): DescribedRequest | undefined {
  let place = 0
  const segments = path.map(found => {
    if (typeof found === 'string') return found
    const known = values[place++] ?? []
    return known[at % known.length] ?? ''
  })
  if (unfit === null) return requestOf({ method, origin, segments, facts, names }, agent)
  const made = requestFromDescription({ request: { method, url: `${origin}/${segments.join('/')}` }, agent }, 0)
  return 'problem' in made ? undefined : made
}

const urlOf = ({ origin, path }: KeptShape): string => `${origin}/${path.map(textOf).join('/')}`
const textOf = (place: KeptPlace): string => (typeof place === 'string' ? place : `{${place[0]}}`)
