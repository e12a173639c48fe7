/** Recorded shapes and samples of requests: kept in the store, and read for policies. */
import { randomUUID } from 'node:crypto'
import type { By } from '../agents/registry.ts'
import { frameRequest, parseRequest, seal, unseal } from '../hitl/seal.ts'
import type { ShapeRecorder, TakenShapes } from '../pipeline/ends/recorder.ts'
import { maxOfShape, type TakenSample } from '../pipeline/ends/sampler.ts'
import type { OpenedSample } from '../policies/simulate.ts'
import { valuesOfBoth } from '../policy/propose/field-values.ts'
import { createSerialQueue } from '../runtime/serial-queue.ts'
import type { RecordedShapes, ShapeCount, StoredSample } from '../storage/store.ts'
import type { Bounds } from '../telemetry/bounds.ts'
import type { Base } from './base.ts'
import type { Identity } from './identity.ts'
import { sealingKeys } from './keys.ts'
import { KeptHits, type RuleHitParts } from './rule-hits.ts'

export interface RecordingParts extends SampleParts, RuleHitParts {
  readonly dataPlane: SampleParts['dataPlane'] & { readonly recorder: ShapeRecorder | undefined }
}

/** What was recorded of requests, of this gateway's threads and in the store. */
export type Recording = ReturnType<typeof openRecording>

/** Time between two additions to the store, milliseconds. */
const flushMs = 10_000
/** Time between two removals of old shapes, milliseconds. */
const pruneMs = 60_000
/** Shapes that one removal takes. */
const maxPruned = 100
const dayMs = 86_400_000
/** Time in which threads have sent what they had noted before shapes were cleared, milliseconds. */
const clearedMs = 60_000
/** Counts that wait while the store fails. */
const maxWaiting = 50_000
/** Bytes of samples that wait while the store fails. */
const maxWaitingBytes = 16_777_216
const keepSampleDays = 7

/** @param closers get what stores the rest */
export function openRecording(parts: RecordingParts, closers: (() => unknown)[]) {
  const { clock, store, dataPlane, report } = parts
  const [samples, hits] = [createSamples(parts), new KeptHits(parts)]
  const { recorder } = dataPlane
  const waiting = new WaitingCounts()
  const inTurn = createSerialQueue()
  let flushedAt = clock.steady()
  let prunedAt = Number.NEGATIVE_INFINITY

  const flushOnce = () => storeWaiting(waiting, samples, parts)
  const flush = () => inTurn(flushOnce)
  const flushAll = () => Promise.all([flush(), hits.flush()])
  closers.push(() => flushAll().catch(error => report('recorded shapes could not be stored', error)))
  return {
    isOn: recorder !== undefined,
    /** Decisions by rule. */
    hits,
    /** Adds what another thread has counted. */
    add: (taken: TakenShapes) => waiting.add(taken),
    /** What is recorded of an agent, by all gateways; of the others as of some seconds ago. */
    async of(agentId: string): Promise<RecordedShapes> {
      await recorder?.read()
      return await flush().then(() => store.shapes.of(agentId))
    },
    /** Whole requests of an agent, opened to be decided again. */
    samplesOf: (agentId: string) => samples.of(agentId),
    async clear(agentId: string, by: By) {
      const at = clock.now()
      await recorder?.read()
      await inTurn(async () => {
        await flushOnce()
        await store.shapes.clear(agentId, { at, ...by, action: 'agent.clearShapes', subject: agentId, details: {} })
        waiting.clear(agentId, at)
      })
    },
    /** Call about every second. */
    async sweep() {
      const now = clock.steady()
      if (now - flushedAt < flushMs) return
      flushedAt = now
      waiting.forgetCleared(clock.now() - clearedMs)
      await flushAll()
      if (now - prunedAt < pruneMs) return
      prunedAt = now
      await Promise.all([pruneShapes(parts), hits.prune()])
    },
  }
}

/** When storing fails, what is not stored yet waits on. */
async function storeWaiting(
  waiting: WaitingCounts,
  samples: ReturnType<typeof createSamples>,
  { config, clock, store, dataPlane: { recorder, bounds } }: RecordingParts,
): Promise<void> {
  const { KeepDays, ShapesPerAgent: maxOfAgent, MaxShapes: max } = config.Recording
  const limits = { maxOfAgent, max, maxDays: KeepDays }
  if (recorder !== undefined) waiting.add(recorder.take())
  let left = waiting.take()
  try {
    if (left.counts.length + left.skipped.length > 0) {
      const missing = await store.shapes.add(left.counts, left.skipped, limits, clock.now())
      for (const agentId of missing) bounds.reached('shapes', agentId)
    }
    left = { ...left, counts: [], skipped: [] }
    await samples.keep(left.samples)
  } catch (error) {
    waiting.add(left)
    throw error
  }
}

async function pruneShapes({
  config,
  clock,
  store,
}: Pick<RecordingParts, 'config' | 'clock' | 'store'>): Promise<void> {
  const today = clock.now()
  await store.shapes.prune(today - config.Recording.KeepDays * dayMs, today - keepSampleDays * dayMs, maxPruned)
}

/** Counts of all threads that are not stored yet, together. */
class WaitingCounts {
  #counts = new Map<string, ShapeCount>()
  #skipped = new Set<string>()
  #samples: TakenSample[] = []
  #bytes = 0
  readonly #clearedAt = new Map<string, number>()

  /** What was noted until then does not count, also when another thread sends it later. */
  clear(agentId: string, at: number): void {
    this.#clearedAt.set(agentId, at)
    this.add(this.take())
  }

  forgetCleared(before: number): void {
    for (const [agentId, at] of this.#clearedAt) if (at < before) this.#clearedAt.delete(agentId)
  }

  #isCleared(agentId: string, at: number): boolean {
    return at <= (this.#clearedAt.get(agentId) ?? Number.NEGATIVE_INFINITY)
  }

  add({ counts, skipped, samples }: TakenShapes): void {
    for (const sample of samples) {
      if (this.#isCleared(sample.agentId, sample.at)) continue
      const { byteLength } = sample.request.body
      if (this.#bytes + byteLength > maxWaitingBytes || this.#samples.length >= maxWaiting) break
      this.#bytes += byteLength
      this.#samples.push(sample)
    }
    for (const agentId of skipped) this.#skipped.add(agentId)
    for (const one of counts) {
      if (this.#isCleared(one.agentId, one.firstAt)) {
        // Some of them came later: values of the others cannot be told apart.
        if (!this.#isCleared(one.agentId, one.lastAt)) this.#skipped.add(one.agentId)
        continue
      }
      const key = `${one.agentId} ${one.digest}`
      const other = this.#counts.get(key)
      if (other === undefined && this.#counts.size >= maxWaiting) this.#skipped.add(one.agentId)
      else this.#counts.set(key, other === undefined ? one : together(one, other))
    }
  }

  take(): TakenShapes {
    const taken = { counts: [...this.#counts.values()], skipped: [...this.#skipped], samples: this.#samples }
    this.#samples = []
    this.#bytes = 0
    this.#counts = new Map()
    this.#skipped = new Set()
    return taken
  }
}

function together(one: ShapeCount, other: ShapeCount): ShapeCount {
  return {
    ...one,
    values: one.values.map((values, place) => [...new Set([...values, ...(other.values[place] ?? [])])]),
    fields: valuesOfBoth(one.fields, other.fields),
    count: one.count + other.count,
    firstAt: Math.min(one.firstAt, other.firstAt),
    lastAt: Math.max(one.lastAt, other.lastAt),
    days: [...new Set([...one.days, ...other.days])].sort((left, right) => left - right),
  }
}

export interface SampleParts extends Pick<Base, 'config' | 'store'> {
  readonly identity: Pick<Identity, 'tokens'>
  readonly dataPlane: { readonly bounds: Pick<Bounds, 'reached'> }
}

/** Samples of requests, sealed in the store. */
function createSamples({ config, store, identity, dataPlane: { bounds } }: SampleParts) {
  const { SamplesPerAgent: maxOfAgent, MaxSampleBytes: maxBytes } = config.Recording
  const keys = sealingKeys(config, identity.tokens.secret)
  return {
    async keep(samples: readonly TakenSample[]) {
      if (samples.length === 0) return
      const sealed = samples.map(sample => sealSample(keys[0], sample))
      const full = await store.shapes.keepSamples(sealed, { maxOfAgent, maxOfShape, maxBytes })
      for (const agentId of full) bounds.reached('samples', agentId)
    },
    async of(agentId: string): Promise<readonly OpenedSample[]> {
      const stored = await store.shapes.samples(agentId)
      return stored.flatMap(sample => openSample(keys, sample) ?? [])
    },
  }
}

const labelOf = (agentId: string, id: string) => `sample:${agentId}:${id}`

function sealSample(key: Uint8Array, { agentId, digest, at, request }: TakenSample): StoredSample {
  const id = randomUUID()
  return { id, agentId, digest, at, sealed: seal(key, labelOf(agentId, id), frameRequest(request).bytes) }
}

/** Undefined when it cannot be opened: its key is gone. */
function openSample(
  keys: readonly Uint8Array[],
  { id, agentId, digest, at, sealed }: StoredSample,
): OpenedSample | undefined {
  const plain = unseal(keys, labelOf(agentId, id), sealed)
  return plain && { digest, at, request: parseRequest(plain) }
}
