/**
 * The OpenTelemetry SDK: batches, retries, time limits, the resource and the OTEL_ variables are its job. It is loaded only
 * when tracing is on, and gets a span once, at its end.
 */
import { getCACertificates } from 'node:tls'
import type { Link, SpanContext } from '@opentelemetry/api'
import type { IdGenerator, ReadableSpan, SpanExporter } from '@opentelemetry/sdk-trace-base'
import { inTime } from '../../runtime/clock.ts'
import { ownVersion } from '../../runtime/version.ts'
import { FairShare } from './fair-share.ts'
import { pairOf, type SpanIds, type SpanSink } from './span.ts'

/** How the collector is reached. What is absent, the SDK takes from its variables. */
export interface CollectorAccess {
  readonly url: string | undefined
  /** Each `name=value`. */
  readonly headers: readonly string[]
  /** PEM text of authorities that are trusted beside the usual ones. */
  readonly ca: string | undefined
}

export interface SinkOptions extends CollectorAccess {
  /** OTEL_BSP_MAX_QUEUE_SIZE, which one agent fills a part of only. */
  readonly queueSize: string | undefined
  /** Unique for this process. */
  readonly instance: string
  /** Called with what became of spans. */
  readonly count: (result: 'exported' | 'failed' | 'dropped', spans: number) => void
  /** Called for each batch that the collector did not take. */
  readonly onFailure: (error: unknown) => void
}

const agentKey = 'agent_gateway.agent.id'
/** Spans that wait, as the SDK has it. */
const usualQueue = 2_048
/** Longest wait for the collector at a stop, milliseconds. */
const closeMs = 2_000

export async function openSpanSink(options: SinkOptions): Promise<SpanSink> {
  const { ROOT_CONTEXT, SpanKind, SpanStatusCode, TraceFlags, trace } = await import('@opentelemetry/api')
  const sdk = await import('@opentelemetry/sdk-trace-base')
  const resources = await import('@opentelemetry/resources')
  const given = Number(options.queueSize)
  const maxQueueSize = Number.isSafeInteger(given) && given > 0 ? given : usualQueue
  const share = new FairShare(maxQueueSize)
  const exporter = await openExporter(options)
  const ids = new GivenIds()
  const own = resources.resourceFromAttributes({
    'service.name': 'agent-gateway',
    'service.version': ownVersion(),
    'service.instance.id': options.instance,
  })
  const detectors = [resources.envDetector, resources.hostDetector]
  const processor = new sdk.BatchSpanProcessor(counted(exporter, share, options), { maxQueueSize })
  const provider = new sdk.BasicTracerProvider({
    resource: resources.defaultResource().merge(own).merge(resources.detectResources({ detectors })),
    sampler: new sdk.AlwaysOnSampler(),
    idGenerator: ids,
    spanProcessors: [processor],
  })
  const tracer = provider.getTracer('agent-gateway', ownVersion())
  const kinds = { server: SpanKind.SERVER, client: SpanKind.CLIENT, internal: SpanKind.INTERNAL }
  const contextOf = ({ traceId, spanId }: SpanIds, isRemote: boolean): SpanContext => ({
    ...{ traceId, spanId, isRemote, traceFlags: TraceFlags.SAMPLED },
  })
  return {
    take(span) {
      if (!share.enter(span)) {
        options.count('dropped', 1)
        return
      }
      ids.next = span
      const { traceId, parentId, link } = span
      const links: Link[] = link === undefined ? [] : [{ context: contextOf(link, false) }]
      const parent =
        parentId === undefined
          ? ROOT_CONTEXT
          : trace.setSpanContext(ROOT_CONTEXT, contextOf({ traceId, spanId: parentId }, span.hasRemoteParent === true))
      const attributes = { ...span.attributes, [agentKey]: span.agentId }
      const started = tracer.startSpan(
        span.name,
        { kind: kinds[span.kind], startTime: timeOf(span.startedAt), attributes, links },
        parent,
      )
      if (span.isError) started.setStatus({ code: SpanStatusCode.ERROR })
      started.end(timeOf(span.endedAt))
    },
    close: () => inTime(processor.shutdown().catch(options.onFailure), closeMs, () => {}),
  }
}

async function openExporter({ url, headers, ca }: CollectorAccess, timeoutMillis?: number): Promise<SpanExporter> {
  const { OTLPTraceExporter } = await import('@opentelemetry/exporter-trace-otlp-http')
  return new OTLPTraceExporter({
    ...(url !== undefined && { url }),
    ...(headers.length > 0 && { headers: Object.fromEntries(headers.map(pairOf)) }),
    ...(ca !== undefined && { httpAgentOptions: { keepAlive: true, ca: [...getCACertificates('default'), ca] } }),
    ...(timeoutMillis !== undefined && { timeoutMillis }),
  })
}

/** Sends a list without a span as spans are sent; why the collector did not take it. */
export async function tryCollector(access: CollectorAccess, timeoutMs: number): Promise<unknown> {
  const exporter = await openExporter(access, timeoutMs)
  const { promise, resolve } = Promise.withResolvers<unknown>()
  exporter.export([], ({ error }) => resolve(error))
  const problem = await promise
  await exporter.shutdown()
  return problem
}

/** Seconds and nanoseconds: the SDK takes small numbers for times since the start of the process. */
function timeOf(ms: number): [number, number] {
  const seconds = Math.floor(ms / 1_000)
  return [seconds, Math.round((ms - seconds * 1_000) * 1e6)]
}

/** The ids of the next span, which were sent upstream already. */
class GivenIds implements IdGenerator {
  next: SpanIds = { traceId: '', spanId: '' }

  generateTraceId(): string {
    return this.next.traceId
  }

  generateSpanId(): string {
    return this.next.spanId
  }
}

/** Spans leave the queue when their batch is sent. */
function counted(exporter: SpanExporter, share: FairShare, { count, onFailure }: SinkOptions): SpanExporter {
  return {
    export(spans: ReadableSpan[], done) {
      for (const { attributes } of spans) share.leave(String(attributes[agentKey]))
      exporter.export(spans, result => {
        count(result.code === 0 ? 'exported' : 'failed', spans.length)
        if (result.code !== 0) onFailure(result.error ?? new Error('the collector did not take the spans'))
        done(result)
      })
    },
    shutdown: () => exporter.shutdown(),
    ...(exporter.forceFlush && { forceFlush: () => exporter.forceFlush?.() ?? Promise.resolve() }),
  }
}
