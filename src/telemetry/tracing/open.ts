/**
 * The OpenTelemetry SDK: batches, retries, time limits, the resource and the OTEL_ variables are its job. It is loaded only
 * when tracing is on, and gets a span once, at its end. Its tracer is not used: it would decide again what is decided, and
 * costs more than the rest of a span.
 */
import { getCACertificates } from 'node:tls'
import type { ReadableSpan, SpanExporter } from '@opentelemetry/sdk-trace-base'
import { inTime } from '../../runtime/clock.ts'
import { ownVersion } from '../../runtime/version.ts'
import { EndedSpan } from './ended-span.ts'
import { FairShare } from './fair-share.ts'
import { pairOf, type SpanSink } from './span.ts'

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
  readonly count: (result: 'exported' | 'failed' | 'dropped', spans: number) => void
  /** Called for each batch that the collector did not take. */
  readonly onFailure: (error: unknown) => void
}

/** Spans that wait, as the SDK has it. */
const usualQueue = 2_048
/** Longest wait for the collector at a stop, milliseconds. */
const closeMs = 2_000

export async function openSpanSink(options: SinkOptions): Promise<SpanSink> {
  const sdk = await import('@opentelemetry/sdk-trace-base')
  const resources = await import('@opentelemetry/resources')
  const given = Number(options.queueSize)
  const maxQueueSize = Number.isSafeInteger(given) && given > 0 ? given : usualQueue
  const share = new FairShare(maxQueueSize)
  const exporter = await openExporter(options)
  const own = resources.resourceFromAttributes({
    'service.name': 'agent-gateway',
    'service.version': ownVersion(),
    'service.instance.id': options.instance,
  })
  const detectors = [resources.envDetector, resources.hostDetector]
  const processor = new sdk.BatchSpanProcessor(counted(exporter, share, options), { maxQueueSize })
  const source = {
    resource: resources.defaultResource().merge(own).merge(resources.detectResources({ detectors })),
    instrumentationScope: { name: 'agent-gateway', version: ownVersion() },
  }
  return {
    take(span) {
      if (share.enter(span)) processor.onEnd(new EndedSpan(span, source))
      else options.count('dropped', 1)
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

/** Spans leave the queue when their batch is sent. */
function counted(exporter: SpanExporter, share: FairShare, { count, onFailure }: SinkOptions): SpanExporter {
  return {
    export(spans: ReadableSpan[], done) {
      for (const span of spans) if (span instanceof EndedSpan) share.leave(span.agentId)
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
