import type { IncomingMessage, ServerResponse } from 'node:http'
import t, { type Test } from 'tap'
import { openSpanSink } from '../../../src/telemetry/tracing/open.ts'
import { newId } from '../../../src/telemetry/tracing/sampling.ts'
import type { FinishedSpan } from '../../../src/telemetry/tracing/span.ts'
import { attributeOf, startCollector } from '../../fixtures/collector.ts'
import { eventually } from '../../fixtures/gateway.ts'

const span = (more: Partial<FinishedSpan> = {}): FinishedSpan => ({
  ...{ traceId: newId(16), spanId: newId(8), kind: 'server', name: 'GET /proxy', agentId: newId(8) },
  ...{ startedAt: 1_700_000_000_000.5, endedAt: 1_700_000_000_001, attributes: {}, isError: false },
  ...more,
})

async function open(t: Test, url: string, headers: readonly string[] = [], queueSize?: string) {
  const counts = { exported: 0, failed: 0, dropped: 0 }
  let failures = 0
  const sink = await openSpanSink({
    ...{ url, headers, queueSize, ca: undefined, instance: 'test' },
    count(result, spans) {
      counts[result] += spans
    },
    onFailure() {
      failures += 1
    },
  })
  t.teardown(() => sink.close())
  return { sink, counts, failures: () => failures }
}

t.test('a span arrives with its ids, times, link and status, and the configured fields', async t => {
  const seen: (string | undefined)[] = []
  const collector = await startCollector(t, (req, res) => {
    seen.push(req.headers.authorization)
    res.end('{}')
  })
  const { sink, counts } = await open(t, collector.url, ['authorization=Bearer a=b'])
  const link = { traceId: newId(16), spanId: newId(8) }
  const sent = span({
    parentId: newId(8),
    link,
    isError: true,
    attributes: { 'http.route': '/proxy', gone: undefined },
  })
  sink.take(sent)
  const [found] = await collector.trace(sent.traceId, 1)
  t.match(found, { spanId: sent.spanId, parentSpanId: sent.parentId, kind: 2, status: { code: 2 }, links: [link] })
  t.equal(found!.startTimeUnixNano, '1700000000000500000')
  t.strictSame([attributeOf(found!, 'http.route'), attributeOf(found!, 'gone')], ['/proxy', undefined])
  t.strictSame(seen, ['Bearer a=b'])
  await eventually(
    () => counts.exported,
    count => count === 1,
  )
})

function shortTimeout(t: Test): void {
  process.env['OTEL_EXPORTER_OTLP_TIMEOUT'] = '300'
  t.teardown(() => delete process.env['OTEL_EXPORTER_OTLP_TIMEOUT'])
}

/** Answers that are no success. A 429 is tried again until the time limit of the exporter. */
const faults: Readonly<Record<string, (req: IncomingMessage, res: ServerResponse) => void>> = {
  'answers 400 and garbage': (_, res) => void res.writeHead(400).end('\0\x01<<<'),
  'answers 429': (_, res) => void res.writeHead(429, { 'Retry-After': '1' }).end(),
  'breaks off': (_, res) => void res.destroy(),
}

for (const [name, respond] of Object.entries(faults)) {
  t.test(`a collector that ${name} costs its spans and nothing else`, async t => {
    const collector = await startCollector(t, respond)
    shortTimeout(t)
    const { sink, counts, failures } = await open(t, collector.url)
    sink.take(span())
    await eventually(
      () => counts.failed,
      count => count === 1,
    )
    t.equal(failures(), 1)
  })
}

t.test(
  'T85: with a silent collector the queue holds so many spans and no more, and a stop does not wait long',
  async t => {
    const collector = await startCollector(t, () => {})
    shortTimeout(t)
    const { sink, counts } = await open(t, collector.url, [], '64')
    for (let times = 0; times < 1_000; times++) sink.take(span())
    t.ok(counts.dropped >= 1_000 - 2 * 64, String(counts.dropped))
    const before = performance.now()
    await sink.close()
    t.ok(performance.now() - before < 60_000)
  },
)
