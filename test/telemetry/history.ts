import t from 'tap'
import { createHistory, percentile } from '../../src/telemetry/history.ts'
import { decisions, duration, llmCost, overhead, requests } from '../../src/telemetry/layout.ts'
import { createMetrics, createMetricsMemory, readTotals } from '../../src/telemetry/metrics.ts'

const none = { pending: 0, oldestSeconds: 0, circuitsOpen: 0, inFlight: 0 }

function start() {
  const memory = createMetricsMemory(2)
  const history = createHistory()
  return {
    history,
    metrics: [createMetrics(memory, 0), createMetrics(memory, 1)] as const,
    sample: (now: number, gauges = none) => history.sample(now, () => readTotals(memory), gauges),
  }
}

t.test('each step has what all threads counted in it', async t => {
  const { history, metrics, sample } = start()
  const [first, second] = metrics
  first.count(requests, 'forwarded')
  sample(0)
  first.count(requests, 'forwarded')
  second.count(requests, 'forwarded')
  for (const outcome of [
    'suspended',
    'policy_denied',
    'rate_limited',
    'invalid_target',
    'upstream_timeout',
    'broken',
  ]) {
    second.count(requests, outcome)
  }
  second.count(decisions, 'deny')
  first.add(llmCost, 0.25)
  second.add(llmCost, 0.5)
  sample(9_999)
  t.strictSame(history.plots('hour').requests.forwarded, [], 'the first step is not over')
  sample(10_000)
  second.count(requests, 'aborted')
  sample(20_500)
  const { stepSeconds, until, requests: counted, decisions: decided, cost } = history.plots('hour')
  t.strictSame([stepSeconds, until], [10, 20_000])
  t.strictSame(counted, {
    forwarded: [2, 0],
    suspended: [1, 0],
    denied: [1, 0],
    limited: [1, 0],
    refused: [1, 0],
    failed: [2, 0],
    aborted: [0, 1],
  })
  t.strictSame(cost, [0.75, 0])
  t.strictSame(decided, { Allow: [0, 0], Deny: [1, 0], Hitl: [0, 0] })
})

t.test('gauges are the highest of their step', async t => {
  const { history, sample } = start()
  sample(0)
  sample(3_000, { ...none, pending: 7, inFlight: 1 })
  sample(6_000, { ...none, pending: 2, inFlight: 5 })
  sample(10_000)
  sample(20_000)
  t.strictSame(history.plots('hour').gauges.pending, [7, 0])
  t.strictSame(history.plots('hour').gauges.inFlight, [5, 0])
})

t.test('percentiles are those of the requests of the step, and null where there were none', async t => {
  const { history, metrics, sample } = start()
  sample(0)
  for (let count = 0; count < 99; count++) metrics[0].observe(duration, 0.007, 'plain')
  metrics[1].observe(duration, 0.7, 'plain')
  metrics[1].observe(overhead, 0.000_01)
  sample(10_000)
  sample(20_000)
  const { whole, gateway } = history.plots('hour')
  t.strictSame(
    [whole.p50, whole.p99, gateway.p99],
    [
      [7.525, null],
      [10, null],
      [0.05, null],
    ],
  )
})

t.test('an hour and a day are kept, each in its steps', async t => {
  const { history, metrics, sample } = start()
  for (let now = 0; now <= 2 * 86_400_000; now += 10_000) {
    metrics[0].count(requests, 'forwarded')
    sample(now)
  }
  const [hour, day] = [history.plots('hour'), history.plots('day')]
  t.strictSame([hour.requests.forwarded.length, day.requests.forwarded.length], [360, 288])
  t.strictSame([new Set(hour.requests.forwarded), new Set(day.requests.forwarded)], [new Set([1]), new Set([30])])
})

t.test('a process that stood still, and a clock that was set back, leave no wrong steps', async t => {
  const { history, metrics, sample } = start()
  sample(0)
  metrics[0].count(requests, 'forwarded')
  sample(50_000)
  t.strictSame(history.plots('hour').requests.forwarded, [0, 0, 0, 0, 1])
  metrics[0].count(requests, 'forwarded')
  sample(20_000)
  sample(60_000)
  t.strictSame(history.plots('hour').requests.forwarded, [0, 0, 0, 0, 1, 1])
  sample(10 * 86_400_000)
  t.equal(history.plots('hour').requests.forwarded.length, 360)
})

t.test('a percentile lies within its bucket, and in the last one at its beginning', async t => {
  const bounds = [0.001, 0.01]
  t.equal(percentile(bounds, [0, 0, 0], 0.5), null)
  t.equal(percentile(bounds, [10, 0, 0], 0.5), 0.5)
  t.equal(percentile(bounds, [5, 5, 0], 0.99), 9.82)
  t.equal(percentile(bounds, [0, 0, 4], 0.5), 10)
})
