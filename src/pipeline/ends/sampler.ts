import type { KeptShape } from '../../policy/propose/kept.ts'
import { type SampledRequest, sampleOf } from '../../policy/propose/sample.ts'
import type { DescribedRequest } from '../../policy/request/describe.ts'

/** A whole request of a shape. */
export interface TakenSample {
  readonly agentId: string
  readonly digest: string
  /** Milliseconds since the epoch. */
  readonly at: number
  readonly request: SampledRequest
}

export interface SamplerLimits {
  readonly shapesPerAgent: number
  /** Bytes that may wait to be taken. */
  readonly maxBytes: number
}

export const maxOfShape = 5
/** Time after which more samples of a shape are made, milliseconds: the first ones may be gone. */
const againMs = 3_600_000
/** Header fields of a sample, roughly. */
const bytesOfHead = 4_096

/** Makes samples of requests, and has them until they are taken. */
export class RequestSampler {
  readonly #limits: SamplerLimits
  /** How many samples were made of a shape, by agent. */
  readonly #counts = new Map<string, Map<string, number>>()
  #samples: TakenSample[] = []
  #bytes = 0
  #since = 0

  constructor(limits: SamplerLimits) {
    this.#limits = limits
  }

  note({ agentId, digest }: Pick<TakenSample, 'agentId' | 'digest'>, shape: KeptShape, found: DescribedRequest): void {
    const { now: at } = found.head
    if (at - this.#since > againMs) {
      this.#since = at
      this.#counts.clear()
    }
    const counts = this.#counts.get(agentId) ?? new Map<string, number>()
    const count = counts.get(digest) ?? 0
    if (count >= maxOfShape || counts.size >= this.#limits.shapesPerAgent || hasSecret(shape)) return
    const request = sampleOf(found)
    const bytes = request === undefined ? 0 : bytesOfHead + request.url.length + request.body.byteLength
    if (request === undefined || this.#bytes + bytes > this.#limits.maxBytes) return
    this.#counts.set(agentId, counts.set(digest, count + 1))
    this.#bytes += bytes
    this.#samples.push({ agentId, digest, at, request })
  }

  take(): readonly TakenSample[] {
    const taken = this.#samples
    this.#samples = []
    this.#bytes = 0
    return taken
  }
}

/** No sample is made of a request in whose path a secret is, or may be. */
const hasSecret = ({ path, unfit }: KeptShape): boolean =>
  path.some(place => place[0] === 'secret') || unfit?.startsWith('a secret') === true
