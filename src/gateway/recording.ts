import type { By } from '../agents/registry.ts'
import type { ShapeRecorder, TakenShapes } from '../pipeline/ends/recorder.ts'
import type { RecordedShapes, ShapeCount } from '../storage/store.ts'
import type { Bounds } from '../telemetry/bounds.ts'
import type { Base } from './base.ts'

export interface RecordingParts extends Pick<Base, 'config' | 'clock' | 'store' | 'report'> {
  readonly dataPlane: { readonly recorder: ShapeRecorder | undefined; readonly bounds: Pick<Bounds, 'reached'> }
}

/** What was recorded of requests, of this gateway's threads and in the store. */
export interface Recording {
  /** Adds what another thread has counted. */
  add(taken: TakenShapes): void
  /** What is recorded of an agent, by all gateways; of the others as of some seconds ago. */
  of(agentId: string): Promise<RecordedShapes>
  clear(agentId: string, by: By): Promise<void>
  /** Call about every second. */
  sweep(): Promise<void>
}

/** Time between two additions to the store, milliseconds. */
const flushMs = 10_000
/** Time between two removals of old shapes, milliseconds. */
const pruneMs = 60_000
/** Shapes that one removal takes. */
const maxPruned = 100
const dayMs = 86_400_000
/** Counts that wait while the store fails. */
const maxWaiting = 50_000

/** @param closers get what stores the rest */
export function openRecording(
  { config, clock, store, dataPlane, report }: RecordingParts,
  closers: (() => unknown)[],
): Recording {
  const { Recording } = config
  const limits = { maxOfAgent: Recording.ShapesPerAgent, max: Recording.MaxShapes, maxDays: Recording.KeepDays }
  const { recorder, bounds } = dataPlane
  const waiting = new WaitingCounts()
  let flushedAt = clock.steady()
  let prunedAt = Number.NEGATIVE_INFINITY
  let flushing: Promise<void> | undefined

  async function flushOnce(): Promise<void> {
    if (recorder !== undefined) waiting.add(recorder.take())
    const taken = waiting.take()
    if (taken.counts.length + taken.skipped.length === 0) return
    try {
      const missing = await store.shapes.add(taken.counts, taken.skipped, limits, clock.now())
      for (const agentId of missing) bounds.reached('shapes', agentId)
    } catch (error) {
      waiting.add(taken)
      throw error
    }
  }

  /** One after the other. */
  function flush(): Promise<void> {
    const before = flushing ?? Promise.resolve()
    const mine = before.catch(() => {}).then(flushOnce)
    flushing = mine
    return mine
  }

  closers.push(() => flush().catch(error => report('recorded shapes could not be stored', error)))
  return {
    add: taken => waiting.add(taken),
    async of(agentId) {
      await recorder?.read()
      await flush()
      return await store.shapes.of(agentId)
    },
    async clear(agentId, by) {
      await flush()
      const entry = { at: clock.now(), ...by, action: 'agent.clearShapes', subject: agentId, details: {} }
      await store.shapes.clear(agentId, entry)
    },
    async sweep() {
      const now = clock.steady()
      if (now - flushedAt < flushMs) return
      flushedAt = now
      await flush()
      if (now - prunedAt < pruneMs) return
      prunedAt = now
      await store.shapes.prune(clock.now() - Recording.KeepDays * dayMs, maxPruned)
    },
  }
}

/** Counts of all threads that are not stored yet, together. */
class WaitingCounts {
  #counts = new Map<string, ShapeCount>()
  #skipped = new Set<string>()

  add({ counts, skipped }: TakenShapes): void {
    for (const agentId of skipped) this.#skipped.add(agentId)
    for (const one of counts) {
      const key = `${one.agentId} ${one.digest}`
      const other = this.#counts.get(key)
      if (other === undefined && this.#counts.size >= maxWaiting) this.#skipped.add(one.agentId)
      else this.#counts.set(key, other === undefined ? one : together(one, other))
    }
  }

  take(): TakenShapes {
    const taken = { counts: [...this.#counts.values()], skipped: [...this.#skipped] }
    this.#counts = new Map()
    this.#skipped = new Set()
    return taken
  }
}

function together(one: ShapeCount, other: ShapeCount): ShapeCount {
  return {
    ...one,
    values: one.values.map((values, place) => [...new Set([...values, ...(other.values[place] ?? [])])]),
    count: one.count + other.count,
    firstAt: Math.min(one.firstAt, other.firstAt),
    lastAt: Math.max(one.lastAt, other.lastAt),
    days: [...new Set([...one.days, ...other.days])].sort((left, right) => left - right),
  }
}
