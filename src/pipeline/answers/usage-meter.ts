import type { Target } from '../../base/target.ts'
import { fieldValues } from '../../http/headers.ts'
import { type CalledModel, calledModel } from '../../llm/formats.ts'
import type { ProviderAt, ProviderId } from '../../llm/providers.ts'
import { type Usage, usageOfHead } from '../../llm/usage.ts'
import { divisionOf, UsageReader } from '../../llm/usage-reader.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { ResponseHead } from '../../upstream/handler.ts'
import { isCoded } from './fields.ts'
import type { Interest, Tap } from './interest.ts'
import type { CostOf } from './pricing.ts'

export interface CallUsage {
  /** `partial`: the answer was cut off, and has a part of the usage. `missing`: it has none. */
  readonly how: 'read' | 'partial' | 'missing'
  readonly tokens: Usage | undefined
  /** That of the answer, or else of the path. */
  readonly model: string | undefined
  /** In the currency of the prices; undefined when the model has none. */
  readonly cost: number | undefined
}

/** A call of a model, before it is sent. */
interface MeteredCall extends CalledModel {
  readonly provider: ProviderId
  readonly target: Target
}

interface MeterParts {
  readonly clock: Clock
  readonly costOf: CostOf
}

/** Has one answer of a model provider read, and tells what the call used. */
export class UsageMeter implements Interest {
  readonly wantsPlainBytes = true
  readonly #call: MeteredCall
  readonly #parts: MeterParts
  #hasAnswer = false
  #ofHead: Usage | undefined
  #reader: UsageReader | undefined
  #found: CallUsage | undefined

  constructor(call: MeteredCall, parts: MeterParts) {
    this.#call = call
    this.#parts = parts
  }

  /** Undefined when its body is not read. */
  watch(head: ResponseHead): Tap | undefined {
    const { status, fields } = head
    // A failed call costs nothing.
    if (status < 200 || status > 299) return undefined
    this.#hasAnswer = true
    const { format } = this.#call
    if (format === 'bedrock-invoke') this.#ofHead = usageOfHead(name => fieldValues(fields, name)[0])
    const division = isCoded(head) ? undefined : divisionOf(fieldValues(fields, 'content-type').join())
    if (division === undefined || this.#ofHead !== undefined) return undefined
    this.#reader = new UsageReader(format, division)
    return this.#reader
  }

  /**
   * Call it when the exchange is over; undefined when the call got no answer.
   *
   * @param isWhole the upstream sent all of its answer
   */
  end(isWhole: boolean): CallUsage | undefined {
    if (this.#hasAnswer) this.#found ??= this.#read(isWhole)
    return this.#found
  }

  #read(isWhole: boolean): CallUsage {
    const found = this.#reader?.end(isWhole)
    const tokens = this.#ofHead ?? found?.usage
    const model = found?.model ?? this.#call.model
    const how = tokens === undefined ? 'missing' : found?.isPartial === true ? 'partial' : 'read'
    return { how, tokens, model, cost: tokens === undefined ? undefined : this.#costOf(tokens, model) }
  }

  #costOf(tokens: Usage, model: string | undefined): number | undefined {
    const { provider, target } = this.#call
    const { costOf, clock } = this.#parts
    return costOf({ origin: target.origin, provider, model, tokens }, clock.now())
  }

  get provider(): ProviderId {
    return this.#call.provider
  }

  /** The model that the path names. */
  get called(): string | undefined {
    return this.#call.model
  }

  /** Bytes of the answer that were read; undefined: it could not be read. */
  get bytes(): number | undefined {
    return this.#reader?.bytes
  }

  /** The model may have thought more than its answer shows, as far as this came. Known at the end. */
  get mayThink(): boolean {
    return this.#reader?.mayThink !== false
  }

  /** What the call used; undefined before its end, and when it got no answer. */
  get usage(): CallUsage | undefined {
    return this.#found
  }
}

/** Meters a call; undefined for one whose answer tells no tokens. */
export type MeterOf = (call: { readonly method: string; readonly target: Target }) => UsageMeter | undefined

export function createMeterOf(providerAt: ProviderAt, parts: MeterParts): MeterOf {
  return ({ method, target }) => {
    const provider = method === 'POST' ? providerAt(target.origin) : undefined
    if (provider === undefined) return undefined
    const called = calledModel(target.path)
    return called === undefined ? undefined : new UsageMeter({ ...called, provider, target }, parts)
  }
}
