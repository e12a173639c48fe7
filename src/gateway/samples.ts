import { randomUUID } from 'node:crypto'
import { frameRequest, parseRequest, seal, unseal } from '../hitl/seal.ts'
import { maxOfShape, type TakenSample } from '../pipeline/ends/sampler.ts'
import type { OpenedSample } from '../policies/simulate.ts'
import type { StoredSample } from '../storage/store.ts'
import type { Bounds } from '../telemetry/bounds.ts'
import type { Base } from './base.ts'
import type { Identity } from './identity.ts'
import { sealingKeys } from './keys.ts'

export interface SampleParts extends Pick<Base, 'config' | 'store'> {
  readonly identity: Pick<Identity, 'tokens'>
  readonly dataPlane: { readonly bounds: Pick<Bounds, 'reached'> }
}

/** Samples of requests, sealed in the store. */
export interface Samples {
  keep(samples: readonly TakenSample[]): Promise<void>
  of(agentId: string): Promise<readonly OpenedSample[]>
}

export function createSamples({ config, store, identity, dataPlane: { bounds } }: SampleParts): Samples {
  const { SamplesPerAgent: maxOfAgent, MaxSampleBytes: maxBytes } = config.Recording
  const keys = sealingKeys(config, identity.tokens.secret)
  return {
    async keep(samples) {
      if (samples.length === 0) return
      const sealed = samples.map(sample => sealSample(keys[0], sample))
      const full = await store.shapes.keepSamples(sealed, { maxOfAgent, maxOfShape, maxBytes })
      for (const agentId of full) bounds.reached('samples', agentId)
    },
    async of(agentId) {
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
