/** What the gateway decides of a trace: whether a request is recorded, its ids, and what its upstream sees of them. */
import { AsyncLocalStorage } from 'node:async_hooks'
import { type HostPattern, matchesAnyHost } from '../../base/host.ts'
import type { Clock } from '../../runtime/clock.ts'
import { fieldsWithout, type ParentContext, parentOf, traceparent } from './context.ts'
import { createSampler, newId, newTraceIn, type Sampler, type SamplingSettings } from './sampling.ts'
import type { FinishedSpan, SpanIds, SpanSink } from './span.ts'

export interface TracingSettings extends SamplingSettings {
  readonly Keep: readonly string[]
  readonly Propagate: 'Given' | 'Always' | 'Never'
  readonly Baggage: 'Pass' | 'Drop'
}

export interface TracingParts {
  readonly settings: TracingSettings
  /** Hosts that see spans of the gateway; undefined: all. */
  readonly hosts: readonly HostPattern[] | undefined
  readonly sink: SpanSink
  readonly clock: Clock
}

/** The trace of a request. Its span has ids from the first use on. */
export interface RequestTrace extends SpanIds {
  readonly parentId: string | undefined
  /** Recorded, however it ends. */
  isKept: boolean
  /** Span of the latest attempt at the upstream. */
  clientId: string
  /** Attempts before it. */
  readonly earlier: EarlierAttempt[]
}

export interface EarlierAttempt {
  readonly spanId: string
  /** Steady milliseconds. */
  readonly from: number
  readonly to: number
}

/** What is asked of a request; the agent is unknown until it has shown its token. */
export interface TracedRequest {
  readonly rawHeaders: readonly string[]
  readonly agent: { readonly id: string } | undefined
  /** Undefined until it was decided; null: not recorded, and no ids were made. */
  trace: RequestTrace | null | undefined
}

export class Tracing {
  readonly settings: TracingSettings
  readonly sink: SpanSink
  readonly #parts: TracingParts
  readonly #sample: Sampler
  /** The call of the API in which the code runs: what it sends is part of its trace. */
  readonly #calls = new AsyncLocalStorage<RequestTrace>()

  constructor(parts: TracingParts) {
    this.settings = parts.settings
    this.sink = parts.sink
    this.#parts = parts
    this.#sample = createSampler(parts.settings)
  }

  /** Decides, once, whether a request is recorded. */
  of(request: TracedRequest): RequestTrace | null {
    if (request.trace !== undefined) return request.trace
    const parent = parentOf(request.rawHeaders)
    const traceId = parent?.traceId ?? newTraceIn(this.settings.Ratio)
    const isKept =
      parent === undefined
        ? traceId !== undefined
        : this.#sample(parent, { agentId: request.agent?.id ?? '', now: this.#parts.clock.steady() })
    request.trace = isKept ? traceOf(parent, traceId) : null
    return request.trace
  }

  /** The trace of a request whose recording may be decided later. */
  open(request: TracedRequest): RequestTrace {
    const trace = this.of(request) ?? { ...traceOf(parentOf(request.rawHeaders)), isKept: false }
    request.trace = trace
    return trace
  }

  /** Records a request although the decision was not to. */
  keep(request: TracedRequest): RequestTrace {
    const trace = this.open(request)
    trace.isKept = true
    return trace
  }

  /** The fields of the request as its upstream gets them. */
  propagate(request: TracedRequest, host: string, given: string[]): string[] {
    const { Propagate } = this.settings
    const trace = this.of(request)
    const fields = this.#withoutBaggage(given)
    if (Propagate === 'Never' || !this.#isShownTo(host)) return fields
    if (trace === null) return Propagate === 'Always' ? this.#announce(request, fields) : fields
    if (trace.parentId === undefined && Propagate === 'Given') return fields
    return withParent(fields, trace, true)
  }

  /** The fields of an approved request, whose sending is a span of another trace. */
  replace(given: readonly string[], host: string, { traceId, spanId }: SpanIds): readonly string[] {
    const { Propagate } = this.settings
    const fields = this.#withoutBaggage(given)
    const hasParent = fields.some((name, i) => i % 2 === 0 && name.toLowerCase() === 'traceparent')
    if (Propagate === 'Never' || !this.#isShownTo(host) || (Propagate === 'Given' && !hasParent)) return fields
    return [...fieldsWithout(fields, ['traceparent', 'tracestate']), 'traceparent', traceparent(traceId, spanId, true)]
  }

  #withoutBaggage<T extends readonly string[]>(fields: T): T | string[] {
    return this.settings.Baggage === 'Drop' ? fieldsWithout(fields, ['baggage']) : fields
  }

  #isShownTo(host: string): boolean {
    const { hosts } = this.#parts
    return hosts === undefined || matchesAnyHost(hosts, host)
  }

  /** Another attempt at the upstream has a span of its own. @param from when the one before began, steady milliseconds */
  again({ trace }: TracedRequest, from: number, fields: readonly string[]): readonly string[] {
    if (!trace) return fields
    trace.earlier.push({ spanId: trace.clientId, from, to: this.#parts.clock.steady() })
    const before = trace.clientId
    trace.clientId = newId(8)
    return fields.map(text => text.replace(`-${trace.traceId}-${before}-`, `-${trace.traceId}-${trace.clientId}-`))
  }

  /** An unsampled request is told to an upstream that shall see all of them; one that says so itself is not changed. */
  #announce(request: TracedRequest, fields: string[]): string[] {
    if (parentOf(request.rawHeaders) !== undefined) return fields
    return withParent(fields, this.open(request), false)
  }

  /**
   * Start and end of a span, milliseconds since the epoch, of two steady times. The spans that end together need one:
   * two readings of the clocks differ by up to 1 ms, and a child would begin after the end of its parent.
   */
  times(): (from: number, to: number) => Pick<FinishedSpan, 'startedAt' | 'endedAt'> {
    const { clock } = this.#parts
    const epoch = clock.now() - clock.steady()
    return (from, to) => ({ startedAt: epoch + from, endedAt: epoch + to })
  }

  take(span: FinishedSpan): void {
    this.sink.take(span)
  }

  /** Runs a call of the API. */
  during<T>(trace: RequestTrace, run: () => Promise<T>): Promise<T> {
    return this.#calls.run(trace, run)
  }

  /** The call of the API in which this runs. */
  get call(): RequestTrace | undefined {
    return this.#calls.getStore()
  }
}

function traceOf(parent: ParentContext | undefined, traceId = parent?.traceId ?? newId(16)): RequestTrace {
  const ids = { traceId, spanId: newId(8), clientId: newId(8) }
  return { ...ids, parentId: parent?.spanId, isKept: true, earlier: [] }
}

/** The field with a span of the gateway, in the place of one that came. */
function withParent(fields: string[], { traceId, clientId, parentId }: RequestTrace, isSampled: boolean): string[] {
  const value = traceparent(traceId, clientId, isSampled)
  const at = fields.findIndex((name, i) => i % 2 === 0 && name.toLowerCase() === 'traceparent')
  if (parentId !== undefined && at >= 0) return fields.with(at + 1, value)
  // One that is repeated or invalid, and the state that belongs to it, is of no trace.
  const others = at < 0 ? fields : fieldsWithout(fields, ['traceparent', 'tracestate'])
  return [...others, 'traceparent', value]
}
