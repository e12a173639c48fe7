/** Spans as the gateway hands them over, once, at their end. */

export interface FinishedSpan {
  readonly traceId: string
  readonly spanId: string
  /** Absent for the first span of a trace. */
  readonly parentId?: string | undefined
  /** The parent is a span of another process. */
  readonly hasRemoteParent?: boolean
  readonly kind: 'server' | 'client' | 'internal'
  readonly name: string
  /** Milliseconds since the epoch, with fractions. */
  readonly startedAt: number
  readonly endedAt: number
  readonly attributes: SpanAttributes
  readonly isError: boolean
  readonly link?: SpanIds | undefined
  /** The agent that caused it; none may fill the queue alone. */
  readonly agentId: string
}

export type SpanAttributes = Readonly<Record<string, string | number | undefined>>

export interface SpanIds {
  readonly traceId: string
  readonly spanId: string
}

/** Takes spans to the collector. Never waits, and never throws. */
export interface SpanSink {
  take(span: FinishedSpan): void
  /** Sends what is there, within a time limit. */
  close(): Promise<void>
}

const methods = new Set(['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'CONNECT', 'OPTIONS', 'TRACE', 'PATCH', 'QUERY'])

/** Methods that agents make up would be as many values. */
export const knownMethod = (method: string): string => (methods.has(method) ? method : '_OTHER')
/** Of a name: low cardinality (semantic conventions for HTTP spans). */
export const namedMethod = (method: string): string => (methods.has(method) ? method : 'HTTP')

/** Name and value of a header field as Telemetry:Tracing:Headers writes it. */
export function pairOf(line: string): readonly [string, string] {
  const mark = line.indexOf('=')
  return [line.slice(0, mark).trim(), line.slice(mark + 1).trim()]
}
