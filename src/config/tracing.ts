import { headerLine, hostPattern, httpUrl, keptKind } from './formats.ts'
import { choice, integer, list, number, optional, secretList } from './setting.ts'

/** Settings under `Telemetry:Tracing`. */
export const tracing = {
  Url: optional(
    'Address of a collector that gets traces by OTLP over HTTP, such as http://127.0.0.1:4318/v1/traces; absent: off, unless OTEL_EXPORTER_OTLP_ENDPOINT is set.',
    httpUrl,
  ),
  Headers: secretList('Header fields of the calls to the collector, each name=value.', headerLine),
  Ratio: number(0.01, 'Share of the requests without a traceparent that are recorded.', { min: 0, max: 1 }),
  Parent: choice(
    ['Follow', 'Ratio'],
    'Follow',
    'Follow: the flag of a traceparent decides whether a request is recorded. Ratio: it does not count.',
  ),
  ParentPerSecond: integer(10, 'Requests of one agent a second for which that flag counts; of more, Ratio decides.', {
    max: 1_000_000,
  }),
  Keep: list(
    'Requests that are recorded although nothing else asks for it: held, refused (not for a rate), failed.',
    keptKind,
    ['held', 'refused', 'failed'],
  ),
  Propagate: choice(
    ['Given', 'Always', 'Never'],
    'Given',
    'When upstreams see a span of the gateway in traceparent. Given: instead of that of a recorded request. Always: of every request. Never: the field passes as it came.',
  ),
  PropagateTo: list('Hosts of the upstreams that see it; empty: all.', hostPattern),
  Baggage: choice(['Pass', 'Drop'], 'Pass', 'Whether the field baggage of a request is sent upstream.'),
} as const
