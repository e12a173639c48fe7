/** Which requests are recorded. Agents are not trusted: the flag that they send counts for a few requests a second. */
import { randomBytes } from 'node:crypto'
import { LRUCache } from '../../runtime/lru.ts'
import type { ParentContext } from './context.ts'

export interface SamplingSettings {
  readonly Ratio: number
  readonly Parent: 'Follow' | 'Ratio'
}

/** Agents whose flags are counted; beyond them the longest idle one begins again. */
const maxAgents = 10_000

/** The random number in a trace id: of its last 56 bits (W3C Trace Context level 2) the first 52, which a number holds. */
const digits = { from: -14, to: -1 }
const allRandom = 2 ** 52

/** The same in every gateway and service that samples by the trace id: the least of the random numbers are left out. */
export const isInRatio = (traceId: string, ratio: number): boolean =>
  Number.parseInt(traceId.slice(digits.from, digits.to), 16) >= (1 - ratio) * allRandom

/** Whether a request with a traceparent is recorded. @param of `now`: steady milliseconds */
export type Sampler = (parent: ParentContext, of: { readonly agentId: string; readonly now: number }) => boolean

/** The id of a new trace that is recorded; undefined when it is not, and then no id is made. */
export function newTraceIn(ratio: number): string | undefined {
  if (Math.random() >= ratio) return undefined
  if (ratio === 1) return newId(16)
  const least = (1 - ratio) * allRandom
  const random = Math.min(allRandom - 1, Math.ceil(least + Math.random() * ratio * allRandom))
  const id = newId(16)
  return id.slice(0, digits.from) + random.toString(16).padStart(digits.to - digits.from, '0') + id.slice(digits.to)
}

/** @param settings read at each request: the ratio may change. @param perSecond flags of one agent that count */
export function createSampler(settings: SamplingSettings, perSecond: number): Sampler {
  const buckets = new LRUCache<string, { left: number; at: number }>({ max: maxAgents })
  const mayFollow = (agentId: string, now: number): boolean => {
    let bucket = buckets.get(agentId)
    if (bucket === undefined) {
      bucket = { left: perSecond, at: now }
      buckets.set(agentId, bucket)
    }
    bucket.left = Math.min(perSecond, bucket.left + ((now - bucket.at) / 1_000) * perSecond)
    bucket.at = now
    if (bucket.left < 1) return false
    bucket.left -= 1
    return true
  }
  return ({ traceId, isSampled }, { agentId, now }) => {
    if (settings.Parent === 'Ratio') return isInRatio(traceId, settings.Ratio)
    return isSampled && (mayFollow(agentId, now) || isInRatio(traceId, settings.Ratio))
  }
}

/** Random bytes that are drawn at once. An id that waits in a span holds the text of all of them. */
const blockBytes = 1_024
let block = ''
let used = 0

/** @param bytes of the id: 16 for a trace, 8 for a span */
export function newId(bytes: 8 | 16): string {
  const length = bytes * 2
  if (used + length > block.length) {
    block = randomBytes(blockBytes).toString('hex')
    used = 0
  }
  used += length
  const id = block.slice(used - length, used)
  // All zeros are invalid.
  return /^0*$/.test(id) ? newId(bytes) : id
}
