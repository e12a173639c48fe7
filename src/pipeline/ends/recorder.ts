/** Shapes of requests: noted when a request is over, read in turns, counted until the gateway takes the counts. */
import { hash } from 'node:crypto'
import { type BodyValues, valuesOfBoth } from '../../policy/propose/field-values.ts'
import { type KeptShape, keptOf } from '../../policy/propose/kept.ts'
import type { ShapeOutcome } from '../../policy/propose/outcome.ts'
import type { ShapeCount } from '../../storage/store.ts'
import type { WorkTurns } from '../work-turns.ts'
import { type RecordedCall, readCall } from './recorded-call.ts'
import { RequestSampler, type TakenSample } from './sampler.ts'

/** Requests that have the same shape and outcome. */
export interface AlikeCalls {
  readonly url: string
  readonly method: string
  readonly effect: ShapeOutcome['effect']
  readonly policy: string | null
  readonly rule: string | null
  readonly status: number
}

interface NotedCall {
  readonly call: RecordedCall
  readonly at: number
  /** By which it is found again; undefined: it has a body of its own. */
  readonly alike: AlikeCalls | undefined
}

interface KnownCalls {
  readonly alike: AlikeCalls
  readonly entry: ShapeTally
}

interface ShapeTally extends Omit<ShapeCount, 'days' | 'fields'> {
  count: number
  firstAt: number
  lastAt: number
  days: number[]
  values: (readonly string[])[]
  /** Undefined: of no request. */
  fields: BodyValues | undefined
}

interface OfAgent {
  /** By URL: a key of all members would be a text that is made, and hashed, for each request. */
  readonly known: Map<string, readonly KnownCalls[]>
  /** Additions to them: never less than they are. */
  size: number
  readonly entries: Map<string, ShapeTally>
  waiting: number
  skipped: boolean
}

export interface TakenShapes {
  readonly counts: readonly ShapeCount[]
  /** Agents of which some requests were not recorded. */
  readonly skipped: readonly string[]
  readonly samples: readonly TakenSample[]
}

/** Of one agent that wait to be read. */
const maxWaiting = 200
/** Of all agents, in this thread. */
const maxKnown = 50_000
/** Steps of reading one request without a body, and of each character of its URL, in which detectors search. */
const stepsOfHead = 4_096
const stepsOfCharacter = 8
const dayMs = 86_400_000

export interface RecorderLimits {
  readonly shapesPerAgent: number
  /** Bytes of bodies that may wait in this thread. */
  readonly maxBytes: number
}

export class ShapeRecorder {
  readonly #limits: RecorderLimits
  readonly #turns: WorkTurns
  readonly #report: (error: unknown) => void
  readonly #sampler: RequestSampler
  readonly #agents = new Map<string, OfAgent>()
  readonly #waiting: NotedCall[] = []
  #bytes = 0
  #size = 0
  #isReading = false
  /** How many were noted, and how many of them were read. */
  #noted = 0
  #done = 0

  constructor(limits: RecorderLimits, turns: WorkTurns, report: (error: unknown) => void) {
    this.#limits = limits
    this.#turns = turns
    this.#report = report
    this.#sampler = new RequestSampler(limits)
  }

  /** Counts a request like an earlier one. False when there is none. */
  count(agentId: string, alike: AlikeCalls, at: number): boolean {
    const of = this.#agents.get(agentId)
    const entry = of?.known.get(alike.url)?.find(one => isAlike(one.alike, alike))?.entry
    if (of === undefined || entry === undefined) return false
    // It was taken since.
    if (entry.count === 0) of.entries.set(entry.digest, entry)
    add(entry, at)
    return true
  }

  /** Notes a request, to be read soon. @param alike it counts for these from then on */
  note(call: RecordedCall, alike: AlikeCalls | undefined, at: number): void {
    const of = this.#of(call.agent.id)
    const bytes = call.body?.byteLength ?? 0
    if (of.waiting >= maxWaiting || this.#bytes + bytes > this.#limits.maxBytes) {
      of.skipped = true
      return
    }
    of.waiting += 1
    this.#bytes += bytes
    this.#noted += 1
    this.#waiting.push({ call, at, alike })
    if (!this.#isReading) void this.#readAll()
  }

  /** Everything since the last call. */
  take(): TakenShapes {
    const counts: ShapeCount[] = []
    const skipped: string[] = []
    for (const [agentId, of] of this.#agents) {
      for (const entry of of.entries.values()) {
        counts.push({ ...entry, fields: entry.fields ?? {} })
        entry.count = 0
        entry.values = entry.values.map(() => [])
        entry.fields = undefined
      }
      if (of.skipped) skipped.push(agentId)
      of.entries.clear()
      of.skipped = false
    }
    if (this.#size > maxKnown) this.#forget()
    return { counts, skipped, samples: this.#sampler.take() }
  }

  /** Waits until everything that was noted so far is read. */
  async read(): Promise<void> {
    const wanted = this.#noted
    while (this.#done < wanted) await this.#turns.next('')
  }

  async #readAll(): Promise<void> {
    this.#isReading = true
    for (let next = this.#waiting.shift(); next !== undefined; next = this.#waiting.shift()) {
      const { call } = next
      await this.#turns.next(call.agent.id)
      this.#of(call.agent.id).waiting -= 1
      this.#bytes -= call.body?.byteLength ?? 0
      // One that fails must not keep those behind it waiting, nor who waits for all.
      await this.#readOne(next).catch(this.#report)
      this.#done += 1
      const { url } = call.target
      this.#turns.spend(stepsOfHead + url.length * stepsOfCharacter + (call.body?.byteLength ?? 0))
    }
    this.#isReading = false
  }

  async #readOne({ call, at, alike }: NotedCall): Promise<void> {
    const { request, read } = await readCall(call, at, this.#turns)
    const of = this.#of(call.agent.id)
    const isWhole = !call.hasBody || call.body !== undefined
    const kept = keptOf(request, isWhole, read)
    if (kept === undefined) {
      of.skipped = true
      return
    }
    const entry = this.#entryOf(of, call, kept.shape, at)
    if (entry === undefined) return
    add(entry, at)
    if (call.isSampled && isWhole) this.#sampler.note(entry, kept.shape, request)
    entry.fields = valuesOfBoth(entry.fields, kept.fields)
    entry.values = kept.values.map((values, place) =>
      [...new Set([...(entry.values[place] ?? []), ...values])].slice(0, 8),
    )
    if (alike === undefined) return
    if (of.size >= this.#limits.shapesPerAgent) this.#forgetKnown(of)
    const before = of.known.get(alike.url) ?? []
    of.known.set(alike.url, [...before.filter(one => !isAlike(one.alike, alike)), { alike, entry }])
    of.size += 1
    this.#size += 1
  }

  #forgetKnown(of: OfAgent): void {
    this.#size -= of.size
    of.size = 0
    of.known.clear()
  }

  #entryOf(of: OfAgent, { agent, outcome }: RecordedCall, shape: KeptShape, at: number): ShapeTally | undefined {
    const texts = { shape: JSON.stringify(shape), outcome: JSON.stringify(outcome) }
    const digest = hash('sha256', `${texts.shape}\n${texts.outcome}`, 'base64url').slice(0, 22)
    const known = of.entries.get(digest)
    if (known !== undefined) return known
    if (of.entries.size >= this.#limits.shapesPerAgent) {
      of.skipped = true
      return undefined
    }
    const entry: ShapeTally = {
      agentId: agent.id,
      digest,
      ...texts,
      values: [],
      fields: undefined,
      count: 0,
      firstAt: at,
      lastAt: at,
      days: [],
    }
    of.entries.set(digest, entry)
    return entry
  }

  #of(agentId: string): OfAgent {
    const known = this.#agents.get(agentId)
    if (known !== undefined) return known
    const made: OfAgent = { known: new Map(), size: 0, entries: new Map(), waiting: 0, skipped: false }
    this.#agents.set(agentId, made)
    return made
  }

  #forget(): void {
    for (const [agentId, of] of this.#agents) {
      this.#forgetKnown(of)
      if (of.waiting === 0) this.#agents.delete(agentId)
    }
  }
}

const isAlike = (one: AlikeCalls, other: AlikeCalls): boolean =>
  one.method === other.method &&
  one.status === other.status &&
  one.effect === other.effect &&
  one.rule === other.rule &&
  one.policy === other.policy

function add(entry: ShapeTally, at: number): void {
  if (entry.count === 0) {
    entry.firstAt = at
    entry.days = []
  }
  entry.count += 1
  entry.lastAt = Math.max(entry.lastAt, at)
  const day = Math.floor(at / dayMs)
  if (entry.days.at(-1) !== day && !entry.days.includes(day)) entry.days.push(day)
}
