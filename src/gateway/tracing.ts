import { parseHostPatterns } from '../base/host.ts'
import type { Environment } from '../config/environment.ts'
import type { Config } from '../config/schema.ts'
import type { Clock } from '../runtime/clock.ts'
import { traceSpans } from '../telemetry/layout.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import { createOncePerMinute } from '../telemetry/once-per-minute.ts'
import type { CollectorAccess } from '../telemetry/tracing/open.ts'
import { Tracing } from '../telemetry/tracing/tracing.ts'
import type { Base } from './base.ts'

interface OpenTracingParts extends Pick<Base, 'config' | 'log'> {
  readonly env: Environment
  readonly clock: Clock
  readonly metrics: Metrics
  /** PEM text of the authorities of Proxy:CaFile. */
  readonly upstreams: { readonly ca: string | undefined }
  /** Unique for this gateway. */
  readonly channelName: string
}

/** The address of the collector; undefined when traces are not recorded. */
export function collectorOf({ Telemetry }: Config, env: Environment): string | undefined {
  const { Url } = Telemetry.Tracing
  const base = env['OTEL_EXPORTER_OTLP_ENDPOINT']
  return Url ?? env['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT'] ?? (base && `${base.replace(/\/$/, '')}/v1/traces`)
}

/** With the authorities of Proxy:CaFile, unless variables of OpenTelemetry name files of their own. */
export function collectorAccess({ Telemetry }: Config, env: Environment, ca: string | undefined): CollectorAccess {
  const { Url, Headers } = Telemetry.Tracing
  const hasOwn = Object.keys(env).some(name =>
    /^OTEL_EXPORTER_OTLP_(?:TRACES_)?(?:CLIENT_)?(?:CERTIFICATE|KEY)$/.test(name),
  )
  return { url: Url, headers: Headers, ca: hasOwn ? undefined : ca }
}

/** Undefined when it is off. Each thread sends its own spans. */
export async function openTracing(parts: OpenTracingParts): Promise<Tracing | undefined> {
  const { config, env, clock, metrics, log, channelName } = parts
  if (collectorOf(config, env) === undefined) return undefined
  const settings = config.Telemetry.Tracing
  const isFirst = createOncePerMinute(clock)
  const { openSpanSink } = await import('../telemetry/tracing/open.ts')
  const sink = await openSpanSink({
    ...collectorAccess(config, env, parts.upstreams.ca),
    instance: channelName,
    queueSize: env['OTEL_BSP_MAX_QUEUE_SIZE'],
    count: (result, spans) => metrics.change(traceSpans, result, spans),
    onFailure(error) {
      if (isFirst('collector')) log.warn({ error }, 'spans were not accepted by the collector')
    },
  })
  const hosts = settings.PropagateTo.length === 0 ? undefined : parseHostPatterns(settings.PropagateTo)
  const parentPerSecond = Math.ceil(settings.ParentPerSecond / config.System.Server.Threads)
  return new Tracing({ settings, parentPerSecond, hosts, sink, clock })
}
