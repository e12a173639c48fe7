import t from 'tap'
import { parseHostPatterns } from '../../src/base/host.ts'
import { exposition } from '../../src/telemetry/exposition.ts'
import { answers, decisions, failures, firstByte } from '../../src/telemetry/layout.ts'
import { createMetrics, createMetricsMemory, readTotals } from '../../src/telemetry/metrics.ts'
import { loadSettings } from '../fixtures/gateway.ts'
import { scrape } from '../fixtures/scrape.ts'

t.test('a host that is named has a label of its own, and all others share one', async t => {
  const origins = ['api.example.com', '*.example.com']
  const memory = createMetricsMemory(2)
  const threads = [0, 1].map(thread => createMetrics(memory, thread, parseHostPatterns(origins)))
  for (const metrics of threads) {
    for (const host of ['api.example.com', 'b.example.com', 'c.example.com', 'elsewhere.test', 'elsewhere.test'])
      metrics.countOf(host, answers, '2xx')
    metrics.countOf('elsewhere.test', failures, 'reset')
    metrics.observeOf('api.example.com', firstByte, 0.2)
    metrics.countOf('api.example.com', decisions, 'allow')
  }
  const { values } = scrape(exposition(readTotals(memory), [], 'text', origins))
  const of = (origin: string) => values.get(`agent_gateway_upstream_responses_total{origin="${origin}",class="2xx"}`)
  t.strictSame([...origins, 'other'].map(of), [2, 4, 4])
  t.equal(values.get('agent_gateway_upstream_failures_total{origin="other",kind="reset"}'), 2)
  t.equal(values.get('agent_gateway_upstream_first_byte_seconds_bucket{origin="api.example.com",le="0.25"}'), 2)
  t.equal(values.get('agent_gateway_upstream_first_byte_seconds_count{origin="other"}'), 0)
  t.notOk(values.has('agent_gateway_upstream_responses_total{class="2xx"}'))
  t.equal(values.get('agent_gateway_decisions_total{effect="allow"}'), 2)
})

t.test('without names the metrics of upstreams have no such label', async t => {
  const memory = createMetricsMemory(1)
  createMetrics(memory).countOf('api.example.com', answers, '2xx')
  const page = exposition(readTotals(memory), [], 'text')
  t.equal(scrape(page).values.get('agent_gateway_upstream_responses_total{class="2xx"}'), 1)
  t.ok(page.split('\n').length < 1_000, `${page.split('\n').length} lines`)
})

t.test('at most 50 hosts have a label, as the lines of a page are bounded', async t => {
  const origins = Array.from({ length: 51 }, (_, index) => `h${index}.test`)
  const problems = (list: readonly string[]) => {
    const loaded = loadSettings({ Telemetry: { Metrics: { Origins: list } } }, {})
    return 'problems' in loaded ? JSON.stringify(loaded.problems) : ''
  }
  t.match(problems(origins), /Telemetry:Metrics:Origins.*at most 50 entries/)
  t.equal(problems(origins.slice(1)), '')
  const page = exposition(readTotals(createMetricsMemory(1)), [], 'text', origins.slice(1))
  t.ok(page.split('\n').length < 3_000)
})
