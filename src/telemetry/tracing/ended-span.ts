import type { Attributes, HrTime, SpanContext, SpanStatus } from '@opentelemetry/api'
import type { ReadableSpan } from '@opentelemetry/sdk-trace-base'
import type { FinishedSpan, SpanIds } from './span.ts'

/** What all spans of a process have. */
type SpanSource = Pick<ReadableSpan, 'resource' | 'instrumentationScope'>

// Values of SpanKind, SpanStatusCode and TraceFlags of @opentelemetry/api, which is loaded only when tracing is on.
const kinds = { internal: 0, server: 1, client: 2 } as const
const [unset, error]: readonly [SpanStatus, SpanStatus] = [{ code: 0 }, { code: 2 }]
const sampled = 1

/** A span as the SDK sends it. What it asks for is made when it does: most spans wait for others of their batch. */
export class EndedSpan implements ReadableSpan {
  readonly #span: FinishedSpan
  readonly #source: SpanSource
  readonly parentSpanContext?: SpanContext
  readonly ended = true
  readonly events = []
  readonly droppedAttributesCount = 0
  readonly droppedEventsCount = 0
  readonly droppedLinksCount = 0

  constructor(span: FinishedSpan, source: SpanSource) {
    this.#span = span
    this.#source = source
    const { traceId, parentId, hasRemoteParent } = span
    if (parentId !== undefined) this.parentSpanContext = contextOf({ traceId, spanId: parentId }, hasRemoteParent)
  }

  get resource() {
    return this.#source.resource
  }

  get instrumentationScope() {
    return this.#source.instrumentationScope
  }

  get agentId(): string {
    return this.#span.agentId
  }

  get name(): string {
    return this.#span.name
  }

  get kind(): number {
    return kinds[this.#span.kind]
  }

  get status(): SpanStatus {
    return this.#span.isError ? error : unset
  }

  spanContext(): SpanContext {
    return contextOf(this.#span)
  }

  get links() {
    const { link } = this.#span
    return link === undefined ? [] : [{ context: contextOf(link) }]
  }

  get startTime(): HrTime {
    return timeOf(this.#span.startedAt)
  }

  get endTime(): HrTime {
    return timeOf(this.#span.endedAt)
  }

  get duration(): HrTime {
    return timeOf(this.#span.endedAt - this.#span.startedAt)
  }

  get attributes(): Attributes {
    const attributes: Attributes = {}
    for (const [name, value] of Object.entries(this.#span.attributes)) if (value !== undefined) attributes[name] = value
    attributes['agent_gateway.agent.id'] = this.#span.agentId
    return attributes
  }
}

const contextOf = ({ traceId, spanId }: SpanIds, isRemote = false): SpanContext => ({
  ...{ traceId, spanId, isRemote, traceFlags: sampled },
})

/** Seconds and nanoseconds. */
function timeOf(ms: number): HrTime {
  const seconds = Math.floor(ms / 1_000)
  return [seconds, Math.round((ms - seconds * 1_000) * 1e6)]
}
