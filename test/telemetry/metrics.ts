import t from 'tap'
import { exposition, formatFor } from '../../src/telemetry/exposition.ts'
import { duration, loopDelay, requests, responseBytes } from '../../src/telemetry/layout.ts'
import { createMetrics, createMetricsMemory, readTotals } from '../../src/telemetry/metrics.ts'
import { createProcessReadings } from '../../src/telemetry/process.ts'
import { createClock } from '../fixtures/clock.ts'
import { scrape } from '../fixtures/scrape.ts'

t.test('each thread counts for itself, and what is shown is all of them together', async t => {
  const memory = createMetricsMemory(2)
  const [first, second] = [createMetrics(memory, 0), createMetrics(memory, 1)]
  first.count(requests, 'forwarded')
  second.count(requests, 'forwarded')
  second.count(requests, 'policy_denied')
  first.add(responseBytes, 1_000)
  second.add(responseBytes, 2 ** 40)
  first.set(loopDelay, 0.5)
  second.set(loopDelay, 0.25)
  const { values } = scrape(exposition(readTotals(memory), [], 'text'))
  t.equal(values.get('agent_gateway_requests_total{outcome="forwarded"}'), 2)
  t.equal(values.get('agent_gateway_requests_total{outcome="policy_denied"}'), 1)
  t.equal(values.get('agent_gateway_upstream_response_body_bytes_total'), 2 ** 40 + 1_000)
  t.equal(values.get('nodejs_eventloop_delay_p99_seconds'), 0.5, 'the worst of both')
})

t.test('a thread that takes the place of a dead one goes on counting from there', async t => {
  const memory = createMetricsMemory(1)
  createMetrics(memory, 0).count(requests, 'forwarded')
  createMetrics(memory, 0).count(requests, 'forwarded')
  t.strictSame(readTotals(memory).of(requests)[0], ['forwarded', 2])
})

t.test('what is not one of the label values is not counted', async t => {
  const memory = createMetricsMemory(1)
  createMetrics(memory).count(requests, 'agent-7')
  const metrics = createMetrics(memory)
  metrics.count(requests, 'toString')
  t.notMatch(exposition(readTotals(memory), [], 'text'), /agent-7|toString/)
})

t.test('a histogram counts each value in every bucket that reaches up to it', async t => {
  const memory = createMetricsMemory(1)
  const metrics = createMetrics(memory)
  for (const seconds of [0.0005, 0.0006, 1, 31]) metrics.observe(duration, seconds, 'plain')
  const { values } = scrape(exposition(readTotals(memory), [], 'text'))
  const bucket = (le: string) => values.get(`agent_gateway_request_duration_seconds_bucket{kind="plain",le="${le}"}`)
  t.strictSame(['0.0005', '0.001', '0.5', '1', '30', '60', '+Inf'].map(bucket), [1, 2, 2, 3, 3, 4, 4])
  t.equal(values.get('agent_gateway_request_duration_seconds_count{kind="plain"}'), 4)
  t.equal(values.get('agent_gateway_request_duration_seconds_sum{kind="plain"}')?.toFixed(4), '32.0011')
})

t.test('values of labels are escaped', async t => {
  const reading = { name: 'a', help: 'b', type: 'gauge', value: 1, labels: { c: 'x"y\\z\n' } } as const
  t.match(exposition(readTotals(createMetricsMemory(1)), [reading], 'text'), 'a{c="x\\"y\\\\z\\n"} 1\n')
})

t.test('readings of the process are those of this process', async t => {
  const readings = new Map(createProcessReadings(createClock(Date.now()))().map(({ name, value }) => [name, value]))
  t.ok(readings.get('process_cpu_seconds_total')! > 0)
  t.ok(readings.get('process_resident_memory_bytes')! > 2 ** 20)
  t.ok(Math.abs(readings.get('process_start_time_seconds')! - (Date.now() / 1_000 - process.uptime())) < 5)
})

t.test('every series is there before anything was counted', async t => {
  const { values } = scrape(exposition(readTotals(createMetricsMemory(1)), [], 'text'))
  t.equal(values.get('agent_gateway_requests_total{outcome="rate_limited"}'), 0)
  t.equal(values.get('agent_gateway_limits_reached_total{limit="held_bytes"}'), 0)
  t.equal(values.get('agent_gateway_request_duration_seconds_count{kind="stream"}'), 0)
})

t.test('OpenMetrics has the same series, names counters without their suffix, and says where it ends', async t => {
  const totals = readTotals(createMetricsMemory(1))
  const [text, open] = (['text', 'openMetrics'] as const).map(format => exposition(totals, [], format))
  const samples = (page = '') => page.split('\n').filter(line => line !== '' && !line.startsWith('#'))
  t.strictSame(samples(open), samples(text))
  t.match(open, '# TYPE agent_gateway_requests counter\n')
  t.ok(open?.endsWith('\n# EOF\n'))
  t.notMatch(text, '# EOF')
})

t.test('a scraper gets OpenMetrics when it names version 1.0.0 or none', async t => {
  const prometheus2 =
    'application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1'
  for (const accept of [
    prometheus2,
    'text/plain, application/openmetrics-text',
    'Application/OpenMetrics-Text; version="1.0.0"; q=0.5',
  ]) {
    t.equal(formatFor([accept]), 'openMetrics', accept)
  }
  for (const accept of [
    '*/*',
    'text/plain',
    'application/openmetrics-text;version=2.0.0',
    'application/openmetrics-text;q=0',
    'application/openmetrics-textual',
  ]) {
    t.equal(formatFor([accept]), 'text', accept)
  }
  t.equal(formatFor([]), 'text')
})
