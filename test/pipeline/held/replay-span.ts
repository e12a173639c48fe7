/** The span of the sending of an approved request. */
import t from 'tap'
import { refuse } from '../../../src/base/refusals.ts'
import type { HeldRequest, ReplayResult, SendContext } from '../../../src/hitl/model.ts'
import { withSpan } from '../../../src/pipeline/held/replay-span.ts'
import type { FinishedSpan } from '../../../src/telemetry/tracing/span.ts'
import { Tracing } from '../../../src/telemetry/tracing/tracing.ts'

const clock = { now: () => 5_000, steady: () => 70 }
const settings = {
  Ratio: 0,
  Parent: 'Follow',
  Keep: [],
  Propagate: 'Always',
  Baggage: 'Pass',
} as const
const held: HeldRequest = { method: 'POST', url: 'https://api.example/a?q=1', rawHeaders: [], body: new Uint8Array() }
const link = { traceId: '1'.repeat(32), spanId: '2'.repeat(16) }
const context: SendContext = {
  ...{ hitlId: 'h1', facts: {}, agentId: 'a', trace: link, approvals: 1, requestId: null },
  ...{ sendBefore: 1, isLate: () => false, abandoned: new AbortController().signal },
} as never // What a span does not read is left out.
const answered = (status: number): ReplayResult =>
  ({
    ...{ kind: 'answered', status, rawHeaders: [], trailers: () => [] },
    async *body() {},
  }) as never // The body is not read.

function sending(result: ReplayResult) {
  const spans: FinishedSpan[] = []
  const seen: HeldRequest[] = []
  const tracing = new Tracing({
    parentPerSecond: 10,
    ...{ settings, hosts: undefined, clock },
    sink: { take: span => spans.push(span), close: async () => {} },
  })
  const send = withSpan(
    async request => {
      seen.push(request)
      return result
    },
    { tracing, clock },
  )
  return { tracing, spans, seen, send }
}

t.test('the span is linked to the held request, and its upstream sees it', async t => {
  const { spans, seen, send } = sending(answered(201))
  await send(held, { ...context, requestId: 'r1' })
  const [span] = spans
  t.match(span, { kind: 'client', name: 'POST', link, isError: false, agentId: 'a' })
  t.equal(span?.parentId, undefined)
  t.match(span?.attributes, {
    ...{ 'server.address': 'api.example', 'server.port': 443, 'http.response.status_code': 201 },
    ...{ 'agent_gateway.hitl.id': 'h1', 'agent_gateway.request.id': 'r1' },
  })
  t.strictSame(seen[0]?.rawHeaders, ['traceparent', `00-${span?.traceId}-${span?.spanId}-01`])
})

t.test('under the call of a reviewer it is part of that trace, which is recorded', async t => {
  const { tracing, spans, send } = sending(answered(404))
  const call = tracing.open({ fields: { traceparent: undefined }, agent: undefined, trace: undefined })
  t.equal(call.isKept, false)
  await tracing.during(call, () => send(held, context))
  t.equal(call.isKept, true)
  t.match(spans, [{ traceId: call.traceId, parentId: call.spanId, isError: true }])
})

t.test('a sending without an answer is an error, with its cause', async t => {
  const { spans, send } = sending({ kind: 'failed', refusal: refuse('busy', 'x') })
  await send(held, context)
  t.match(spans, [{ isError: true, attributes: { 'error.type': 'busy', 'http.response.status_code': undefined } }])
})

t.test('what was not recorded as it was held is sent without a span, as is everything without tracing', async t => {
  const { spans, seen, send } = sending(answered(200))
  await send(held, { ...context, trace: undefined })
  t.strictSame([spans, seen], [[], [held]])
  const plain = async () => answered(200)
  t.equal(withSpan(plain, { tracing: undefined, clock }), plain)
})
