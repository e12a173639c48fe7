/** What the gateway decides of a trace: whether a request is recorded, its ids, and what its upstream sees of them. */
import { AsyncLocalStorage } from 'node:async_hooks'
import { type HostPattern, matchesAnyHost } from '../../base/host.ts'
import type { Clock } from '../../runtime/clock.ts'
import { fieldsWithout, type ParentContext, parseTraceparent, traceparent } from './context.ts'
import { createSampler, newId, newTraceIn, type Sampler, type SamplingSettings } from './sampling.ts'
import type { SpanIds, SpanSink } from './span.ts'

export interface TracingSettings extends SamplingSettings {
  readonly Keep: readonly string[]
  readonly Propagate: 'Given' | 'Always' | 'Never'
  readonly Baggage: 'Pass' | 'Drop'
}

export interface TracingParts {
  readonly settings: TracingSettings
  /** Requests of one agent a second whose flag counts. */
  readonly parentPerSecond: number
  /** Hosts that see spans of the gateway; undefined: all. */
  readonly hosts: readonly HostPattern[] | undefined
  readonly sink: SpanSink
  readonly clock: Clock
}

/** The trace of a request. An id is made when it is first asked for: most are of requests that nobody records. */
export class RequestTrace implements SpanIds {
  readonly parentId: string | undefined
  /** Recorded, however it ends. */
  isKept: boolean
  /** Attempts at the upstream before the latest one. */
  earlier: readonly EarlierAttempt[] = none
  #traceId: string | undefined
  #spanId: string | undefined = undefined
  #clientId: string | undefined = undefined

  constructor(parent: ParentContext | undefined, traceId: string | undefined, isKept: boolean) {
    this.parentId = parent?.spanId
    this.isKept = isKept
    this.#traceId = traceId ?? parent?.traceId
  }

  get traceId(): string {
    this.#traceId ??= newId(16)
    return this.#traceId
  }

  get spanId(): string {
    this.#spanId ??= newId(8)
    return this.#spanId
  }

  /** Span of the latest attempt at the upstream. */
  get clientId(): string {
    this.#clientId ??= newId(8)
    return this.#clientId
  }

  /** The attempt ended, and another one begins. */
  again(from: number, to: number): void {
    this.earlier = [...this.earlier, { spanId: this.clientId, from, to }]
    this.#clientId = undefined
  }
}

const none: readonly EarlierAttempt[] = []

export interface EarlierAttempt {
  readonly spanId: string
  /** Steady milliseconds. */
  readonly from: number
  readonly to: number
}

/** What is asked of a request; the agent is unknown until it has shown its token. */
export interface TracedRequest {
  readonly fields: { readonly traceparent: string | undefined }
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
    this.#sample = createSampler(parts.settings, parts.parentPerSecond)
  }

  /** Decides, once, whether a request is recorded. */
  of(request: TracedRequest): RequestTrace | null {
    if (request.trace !== undefined) return request.trace
    const parent = parentOf(request)
    const traceId = parent?.traceId ?? newTraceIn(this.settings.Ratio)
    const isKept =
      parent === undefined
        ? traceId !== undefined
        : this.#sample(parent, { agentId: request.agent?.id ?? '', now: this.#parts.clock.steady() })
    request.trace = isKept ? new RequestTrace(parent, traceId, true) : null
    return request.trace
  }

  /** The trace of a request whose recording may be decided later. */
  open(request: TracedRequest): RequestTrace {
    const trace = this.of(request) ?? new RequestTrace(parentOf(request), undefined, false)
    request.trace = trace
    return trace
  }

  /** Records a request although the decision was not to. */
  keep(request: TracedRequest): RequestTrace {
    const trace = this.open(request)
    trace.isKept = true
    return trace
  }

  /** The fields of the request as its upstream gets them, in the same list where nothing is taken out of it. */
  propagate(request: TracedRequest, host: string, given: string[]): string[] {
    const { Propagate } = this.settings
    const trace = this.of(request)
    const fields = this.#withoutBaggage(given)
    if (trace === null && Propagate !== 'Always') return fields
    if (Propagate === 'Never' || !this.#isShownTo(host)) return fields
    // An unsampled request is told to an upstream that shall see all of them; one that says so itself is not changed.
    if (trace === null && parentOf(request) !== undefined) return fields
    if (trace !== null && trace.parentId === undefined && Propagate === 'Given') return fields
    return withParent(fields, this.open(request), request.fields.traceparent)
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
    const before = trace.clientId
    trace.again(from, this.#parts.clock.steady())
    return fields.map(text => text.replace(`-${trace.traceId}-${before}-`, `-${trace.traceId}-${trace.clientId}-`))
  }

  /**
   * Milliseconds since the epoch at the steady time 0. The spans that end together need one reading: two differ by up to
   * 1 ms, and a child would begin after the end of its parent.
   */
  epoch(): number {
    const { clock } = this.#parts
    return clock.now() - clock.steady()
  }

  /** Runs a call of the API. */
  during<T>(trace: RequestTrace, run: () => Promise<T>): Promise<T> {
    return this.#calls.run(trace, run)
  }

  get call(): RequestTrace | undefined {
    return this.#calls.getStore()
  }
}

function parentOf({ fields: { traceparent } }: TracedRequest): ParentContext | undefined {
  return traceparent === undefined ? undefined : parseTraceparent(traceparent)
}

/** The field with a span of the gateway, in the place of one that came. */
function withParent(fields: string[], trace: RequestTrace, given: string | undefined): string[] {
  const { traceId, clientId, parentId, isKept } = trace
  const value = traceparent(traceId, clientId, isKept)
  if (given === undefined) {
    fields.push('traceparent', value)
    return fields
  }
  const at = fields.findIndex((name, i) => i % 2 === 0 && name.toLowerCase() === 'traceparent')
  if (parentId !== undefined && at >= 0) return fields.with(at + 1, value)
  // One that is repeated or invalid, and the state that belongs to it, is of no trace.
  const others = at < 0 ? fields : fieldsWithout(fields, ['traceparent', 'tracestate'])
  return [...others, 'traceparent', value]
}
