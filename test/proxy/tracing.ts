/** Traces of requests through a gateway with two threads. */
import t from 'tap'
import { newId } from '../../src/telemetry/tracing/sampling.ts'
import { attributeOf, startCollector } from '../fixtures/collector.ts'
import { fetchDocumented } from '../fixtures/documented.ts'
import { eventually, startGateway } from '../fixtures/gateway.ts'
import { startOrigin } from '../fixtures/origin.ts'

const [collector, origin] = [await startCollector(t), await startOrigin(t)]
const gateway = await startGateway(t, {
  alone: 'spans of one gateway are looked at',
  config: {
    System: { Server: { Threads: 2 } },
    Telemetry: { Tracing: { Url: collector.url, Ratio: 0, ParentPerSecond: 1_000_000 } },
    Policies: [
      {
        name: 'traced',
        default: 'Allow',
        rules: [
          rule('held', 'Hitl', '/held'),
          rule('denied', 'Deny', '/denied'),
          { name: 'tool', effect: 'Deny', conditions: [{ field: 'mcp.tool', operator: 'eq', value: 'drop_table' }] },
        ],
      },
    ],
  },
})
function rule(name: string, effect: string, path: string) {
  return { name, effect, conditions: [{ field: 'input.path', operator: 'eq', value: path }] }
}
const bot = await gateway.agent({ policyName: 'traced' })
const parent = () => ({ traceId: newId(16), spanId: newId(8) })
const call = (path: string, headers: Record<string, string> = {}) =>
  gateway.proxy(bot.token, origin.url + path, { headers: { Connection: 'close', ...headers } })
const sampled = ({ traceId, spanId }: ReturnType<typeof parent>, flag = '01') => ({
  traceparent: `00-${traceId}-${spanId}-${flag}`,
})

t.test('a sampled request has a span of the server and one of the client, whose id the upstream sees', async t => {
  for (let times = 0; times < 6; times++) {
    const given = parent()
    await call('/ok?key=value', { ...sampled(given), tracestate: 'a=b' })
    const spans = await collector.trace(given.traceId, 2)
    t.equal(spans.length, 2)
    const [server, client] = [2, 3].map(kind => spans.find(span => span.kind === kind)!)
    t.match(server, { name: 'GET /proxy', parentSpanId: given.spanId })
    t.match(client, { name: 'GET', parentSpanId: server!.spanId })
    t.match(origin.seen.at(-1)?.headers, {
      traceparent: `00-${given.traceId}-${client!.spanId}-01`,
      tracestate: 'a=b',
    })
    t.equal(attributeOf(server!, 'agent_gateway.agent.id'), bot.id)
    t.equal(attributeOf(server!, 'url.path'), '/ok')
    t.equal(attributeOf(client!, 'http.response.status_code'), 200)
    t.ok(BigInt(server!.endTimeUnixNano) >= BigInt(client!.startTimeUnixNano))
    const line = await eventually(
      () => gateway.log.find(({ traceId }) => traceId === given.traceId),
      found => found !== undefined,
    )
    t.match(line, { message: 'exchange', spanId: server!.spanId })
  }
  t.notMatch(JSON.stringify(collector.spans), 'key=value')
})

t.test('a request that is not sampled, or has no valid traceparent, is not changed', async t => {
  for (const traceparent of [sampled(parent(), '00').traceparent, 'nonsense']) {
    await call('/ok', { traceparent })
    t.equal(origin.seen.at(-1)?.headers['traceparent'], traceparent)
  }
  await call('/ok')
  t.equal(origin.seen.at(-1)?.headers['traceparent'], undefined)
})

t.test('a refused request is kept although it is not sampled, as an error of its code', async t => {
  const given = parent()
  t.equal((await call('/denied', sampled(given, '00'))).status, 403)
  const [span] = await collector.trace(given.traceId, 1)
  t.equal(attributeOf(span!, 'error.type'), 'policy_denied')
  t.equal(attributeOf(span!, 'agent_gateway.rule'), 'denied')
})

t.test('the sending of a held request is under the call of its reviewer, and linked to the request', async t => {
  const given = parent()
  const held = await call('/held', sampled(given))
  t.equal(held.status, 202)
  const [server] = await collector.trace(given.traceId, 1)
  const id = held.headers.get('gateway-hitl-id')
  t.equal((await gateway.manage('POST', `/hitl/${id}/approve`)).status, 200)
  const isReplay = () => collector.spans.find(({ links }) => links?.some(({ traceId }) => traceId === given.traceId))
  const replay = await eventually(isReplay, found => found !== undefined)
  t.match(replay, { kind: 3, links: [{ spanId: server!.spanId }] })
  t.match(origin.seen.at(-1)?.headers['traceparent'], `00-${replay!.traceId}-${replay!.spanId}-01`)
  const reviewer = (await collector.trace(replay!.traceId, 2)).find(({ kind }) => kind === 2)
  t.match(reviewer, { name: 'POST /hitl/{id}/approve', spanId: replay!.parentSpanId })
  const shown = (await gateway.manage('GET', `/hitl/${id}`)).text
  t.match(shown, sampled(given).traceparent, 'people see the field as the agent sent it')
  t.notMatch(shown, server!.spanId)
})

t.test('T85: agents cannot reach the collector under any name of this machine', async t => {
  const calls = collector.calls()
  for (const host of ['127.0.0.1', 'localhost', '[::1]', '127.0.0.2']) {
    const url = collector.url.replace('127.0.0.1', host)
    t.equal((await gateway.proxy(bot.token, url, { method: 'POST', body: '{"resourceSpans":[]}' })).status, 403, host)
  }
  await collector.trace(await lastTrace(), 1)
  t.ok(collector.calls() >= calls)
})

async function lastTrace(): Promise<string> {
  const given = parent()
  await call('/ok', sampled(given))
  return given.traceId
}

t.test('spans of MCP calls are named by the method, never by the tool, where a rule read the message', async t => {
  const send = async (message: object) => {
    const given = parent()
    const headers = { 'Content-Type': 'application/json', ...sampled(given) }
    await gateway.proxy(bot.token, `${origin.url}/mcp`, { method: 'POST', body: JSON.stringify(message), headers })
    return collector.trace(given.traceId, 2)
  }
  const call = (method: string, name: string) => ({
    jsonrpc: '2.0',
    id: 1,
    method,
    params: { name, arguments: { a: 'private' } },
  })
  const spans = await send(call('tools/call', 'read_row'))
  t.strictSame(new Set(spans.map(({ name }) => name)), new Set(['tools/call']))
  for (const span of spans) {
    t.equal(attributeOf(span, 'mcp.method.name'), 'tools/call')
    t.equal(attributeOf(span, 'gen_ai.tool.name'), 'read_row')
  }
  for (const span of await send(call('tools/call', 'x'.repeat(50_000)))) {
    t.equal(attributeOf(span, 'gen_ai.operation.name'), 'execute_tool')
    t.equal(attributeOf(span, 'gen_ai.tool.name'), undefined, 'no tool has such a name: it must not wait in memory')
  }
  for (const message of [call('made/up', 'a'), [call('tools/call', 'a')]]) {
    const others = await send(message)
    t.strictSame(others.map(({ name }) => name).sort(), ['POST', 'POST /proxy'])
    t.equal(attributeOf(others[0]!, 'mcp.method.name'), undefined)
  }
  t.match(await send(call('prompts/get', 'a')), [{ name: 'prompts/get' }, { name: 'prompts/get' }])
  t.notMatch(JSON.stringify(collector.spans), 'private')
})

t.test('calls of models have the names of OpenTelemetry where a rule read their body', async t => {
  const send = async (path: string, body: string, spans = 2) => {
    const given = parent()
    const headers = { 'Content-Type': 'application/json', ...sampled(given) }
    await gateway.proxy(bot.token, origin.url + path, { method: 'POST', body, headers })
    return collector.trace(given.traceId, spans)
  }
  const body = JSON.stringify({ model: 'small-1', messages: [{ role: 'user', content: 'private' }] })
  for (const span of await send('/v1/chat/completions', body)) {
    t.equal(attributeOf(span, 'gen_ai.operation.name'), 'chat')
    t.equal(attributeOf(span, 'gen_ai.provider.name'), 'openai')
    t.equal(attributeOf(span, 'gen_ai.request.model'), 'small-1')
  }
  t.equal(attributeOf((await send('/items', body))[0]!, 'gen_ai.request.model'), undefined)
  // Servers differ in what they read: the rule denies it.
  const [twice] = await send('/v1/chat/completions', '{"model":"a","Model":"b","method":"x","Method":"y"}', 1)
  t.equal(attributeOf(twice!, 'gen_ai.request.model'), undefined)
  t.notMatch(JSON.stringify(collector.spans), 'private')
})

t.test('the latency of a kept request shows its trace to a scraper of OpenMetrics', async t => {
  const given = parent()
  t.equal((await call('/denied', sampled(given, '00'))).status, 403)
  const held = parent()
  t.equal((await call('/held', sampled(held))).status, 202)
  const token = gateway.adminToken
  const page = async () => {
    const headers = { Authorization: `Bearer ${token}`, Accept: 'application/openmetrics-text; version=1.0.0' }
    return (await fetchDocumented(`${gateway.url}/metrics`, { headers })).text()
  }
  const ids = [given, held].map(({ traceId }) => traceId)
  const shown = await eventually(page, text => ids.every(id => text.includes(id)))
  t.match(
    shown,
    new RegExp(`kind="plain",le="[^"]+"\\} \\d+ # \\{trace_id="${given.traceId}"\\} [\\d.e-]+ \\d+\\.\\d{3}\n`),
  )
  t.match(shown, new RegExp(`kind="held",le="[^"]+"\\} \\d+ # \\{trace_id="${held.traceId}"\\}`))
})

t.test('the resource names the service; metrics count the spans', async t => {
  t.match(JSON.stringify(collector.resources[0]), /"service\.name".*"agent-gateway"/)
  const { text } = await gateway.manage('GET', '/metrics')
  t.match(text, /agent_gateway_trace_spans_total\{result="exported"\} [1-9]/)
})
