/** What upstreams see of a trace, and what is recorded of it. */
import t from 'tap'
import { isRefusal } from '../../../src/base/refusals.ts'
import { readFields } from '../../../src/http/headers.ts'
import { parseTraceparent } from '../../../src/telemetry/tracing/context.ts'
import {
  type TracedRequest,
  Tracing,
  type TracingParts,
  type TracingSettings,
} from '../../../src/telemetry/tracing/tracing.ts'

const [traceId, spanId] = ['4bf92f3577b34da6a3ce929d0e0e4736', '00f067aa0ba902b7']
const parent = ['Traceparent', `00-${traceId}-${spanId}-01`]
const unsampled = ['Traceparent', `00-${traceId}-${spanId}-00`]
const state = ['Tracestate', 'a=1']
const usual = {
  Ratio: 0,
  Parent: 'Follow',
  Keep: [],
  Propagate: 'Given',
  Baggage: 'Pass',
} as const

const still = { now: () => 5_000, steady: () => 70 }

function open(settings: Partial<TracingSettings>, hosts?: TracingParts['hosts'], clock = still): Tracing {
  const sink = { take() {}, close: async () => {} }
  return new Tracing({
    settings: { ...usual, ...settings },
    parentPerSecond: 10,
    hosts,
    sink,
    clock,
  })
}
function asked(rawHeaders: readonly string[]): TracedRequest {
  const fields = readFields(['Host', 'a', ...rawHeaders.filter((_, i) => rawHeaders[i - (i % 2)] !== 'Host')], '1.1')
  if (isRefusal(fields)) throw new Error(fields.detail)
  return { fields, agent: { id: 'a' }, trace: undefined }
}
/** The fields that the upstream of a request with these fields gets. */
const sent = (tracing: Tracing, fields: readonly string[], host = 'api.example') =>
  tracing.propagate(asked(fields), host, [...fields])

t.test('an upstream sees the span of the gateway in the place of the one that came', async t => {
  const [name, value = '', ...rest] = sent(open({}), [...parent, ...state])
  t.match(parseTraceparent(value), { traceId, isSampled: true })
  t.not(parseTraceparent(value)?.spanId, spanId)
  t.strictSame([name, ...rest], ['Traceparent', ...state])
})

t.test('with Propagate: Given a request that brought no trace is sent without one', async t => {
  t.strictSame(sent(open({ Ratio: 1 }), ['Host', 'a']), ['Host', 'a'])
})

t.test('with Propagate: Never, and for other hosts, the fields stay as they came', async t => {
  t.strictSame(sent(open({ Propagate: 'Never' }), parent), parent)
  t.strictSame(sent(open({ Propagate: 'Always', Ratio: 1 }, []), parent), parent)
})

t.test(
  'with Propagate: Always what is not recorded is told as unsampled, but for a trace that says so itself',
  async t => {
    const tracing = open({ Propagate: 'Always' })
    const [name, value = ''] = sent(tracing, [])
    t.equal(name, 'traceparent')
    t.equal(parseTraceparent(value)?.isSampled, false)
    t.strictSame(sent(tracing, unsampled), unsampled)
  },
)

t.test('T85: a repeated parent and its state are replaced by one of the gateway', async t => {
  const fields = sent(open({ Propagate: 'Always', Ratio: 1 }), [...parent, 'Host', 'a', ...parent, ...state])
  t.strictSame(fields.slice(0, 3), ['Host', 'a', 'traceparent'])
  t.equal(fields.length, 4)
  t.not(parseTraceparent(fields[3] ?? '')?.traceId, traceId)
})

t.test('baggage is passed or dropped as it is set', async t => {
  const fields = ['Host', 'a', 'Baggage', 'user=1']
  t.strictSame(sent(open({}), fields), fields)
  t.strictSame(sent(open({ Baggage: 'Drop' }), fields), ['Host', 'a'])
})

t.test('an approved request gets the span of its sending where it had a parent', async t => {
  const ids = { traceId: 'a'.repeat(32), spanId: 'b'.repeat(16) }
  const own = ['traceparent', `00-${ids.traceId}-${ids.spanId}-01`]
  const replaced = (settings: Partial<TracingSettings>, fields: readonly string[], hosts?: TracingParts['hosts']) =>
    open(settings, hosts).replace(fields, 'api.example', ids)
  t.strictSame(replaced({}, [...parent, ...state, 'Host', 'a']), ['Host', 'a', ...own])
  t.strictSame(replaced({}, ['Host', 'a']), ['Host', 'a'])
  t.strictSame(replaced({ Propagate: 'Always' }, ['Host', 'a']), ['Host', 'a', ...own])
  t.strictSame(replaced({ Propagate: 'Never' }, parent), parent)
  t.strictSame(replaced({}, parent, []), parent)
})

t.test('another attempt has a span of its own, which the upstream sees', async t => {
  const tracing = open({})
  const request = asked(parent)
  const fields = tracing.propagate(request, 'api.example', [...parent])
  const first = parseTraceparent(fields[1] ?? '')?.spanId
  const again = tracing.again(request, 40, fields)
  const trace = tracing.of(request)
  t.strictSame(trace?.earlier, [{ spanId: first, from: 40, to: 70 }])
  t.strictSame(again, ['Traceparent', `00-${traceId}-${trace?.clientId}-01`])
  t.strictSame(tracing.again(asked([]), 40, ['Host', 'a']), ['Host', 'a'], 'without a trace nothing changes')
})

t.test('what was not to be recorded has ids once it is kept, and the decision is made once', async t => {
  const tracing = open({})
  const request = asked([])
  t.equal(tracing.of(request), null)
  t.equal(tracing.open(request).isKept, false)
  t.equal(tracing.keep(request), tracing.of(request))
  t.equal(tracing.of(request)?.isKept, true)
})

t.test('an id comes with its first use, and stays', async t => {
  const trace = open({ Propagate: 'Always' }).open(asked([]))
  t.equal(trace.parentId, undefined)
  const ids = [trace.traceId, trace.spanId, trace.clientId]
  t.match(ids, [/^[0-9a-f]{32}$/, /^[0-9a-f]{16}$/, /^[0-9a-f]{16}$/])
  t.strictSame([trace.traceId, trace.spanId, trace.clientId], ids)
})

t.test('a request that starts again is still told as unsampled', async t => {
  const tracing = open({ Propagate: 'Always' })
  const request = asked([])
  const first = tracing.propagate(request, 'api.example', [])
  t.equal(parseTraceparent(first[1] ?? '')?.isSampled, false)
  t.strictSame(tracing.propagate(request, 'api.example', []), first)
})

t.test('a ratio that a reload changes counts from the next request on', async t => {
  const settings: { -readonly [name in keyof TracingSettings]: TracingSettings[name] } = { ...usual }
  const sink = { take() {}, close: async () => {} }
  const tracing = new Tracing({ settings, parentPerSecond: 0, hosts: undefined, sink, clock: still })
  const isKept = (fields: readonly string[]) => tracing.of(asked(fields))?.isKept === true
  t.strictSame([isKept([]), isKept(parent)], [false, false])
  settings.Ratio = 1
  t.strictSame([isKept([]), isKept(parent)], [true, true])
})

t.test('spans that end together are told by one reading of the clocks', async t => {
  t.equal(open({}).epoch(), 4_930)
})
