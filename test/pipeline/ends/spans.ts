/** Spans of proxied requests: what is kept, and what each of them says. */
import t from 'tap'
import { spanListener } from '../../../src/pipeline/ends/spans.ts'
import { Exchange } from '../../../src/pipeline/exchange.ts'
import type { FinishedSpan } from '../../../src/telemetry/tracing/span.ts'
import { Tracing } from '../../../src/telemetry/tracing/tracing.ts'

const kept = ['held', 'refused', 'failed']
const traced = { traceparent: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01' }

/** The spans of a request that ended so, of an agent that sent no trace. */
function spansOf(ended: object, Keep: readonly string[] = kept): readonly FinishedSpan[] {
  const spans: FinishedSpan[] = []
  const settings = {
    Ratio: 0,
    Parent: 'Follow',
    Keep,
    Propagate: 'Given',
    Baggage: 'Pass',
  } as const
  const sink = { take: (span: FinishedSpan) => spans.push(span), close: async () => {} }
  const tracing = new Tracing({
    settings,
    parentPerSecond: 10,
    hosts: undefined,
    sink,
    clock: { now: () => 5_000, steady: () => 1_000 },
  })
  const usual = {
    ...{ fields: {}, agent: { id: 'a' }, trace: undefined, method: 'GET', startedAt: 100, requestId: 'r' },
    ...{ addressing: {}, res: { headersSent: true, statusCode: 200 }, ending: 'forwarded', outcome: 'forwarded' },
    target: { path: '/x', origin: { host: 'api.example', port: 443, scheme: 'https' } },
  }
  const given = Object.getOwnPropertyDescriptors({ ...usual, ...ended })
  spanListener(tracing).ended(Object.create(Exchange.prototype, given), 900)
  return spans
}
const names = (ended: object, Keep?: readonly string[]) =>
  spansOf(ended, Keep).map(({ kind, name }) => `${kind} ${name}`)

t.test('without a trace only what is to be kept is recorded: held, refused and failed requests', async t => {
  t.strictSame(names({}), [])
  t.strictSame(names({ hitlId: 'h', sentAt: 200 }), ['server GET /proxy'], 'it is sent under the call of its reviewer')
  t.strictSame(names({ ending: 'refused', refusal: 'policy_denied' }), ['server GET /proxy'])
  t.strictSame(names({ ending: 'refused', refusal: 'rate_limited' }), [], 'anybody can make as many as they like')
  t.strictSame(names({ ending: 'refused', refusal: 'policy_denied', agent: undefined }), [])
  for (const failed of [{ ending: 'broken' }, { failure: 'reset' }, { upstreamStatus: 500 }]) {
    t.strictSame(names({ ...failed, sentAt: 200 }), ['server GET /proxy', 'client GET'])
    t.strictSame(names(failed, ['held']), [])
  }
})

t.test('the span of a request says how it ended, and nothing of its query', async t => {
  const [server] = spansOf({ ending: 'refused', refusal: 'policy_denied', method: 'BREW' })
  t.match(server, { name: 'HTTP /proxy', isError: false, startedAt: 4_100, endedAt: 4_900, agentId: 'a' })
  t.match(server?.attributes, {
    'http.request.method': '_OTHER',
    'http.response.status_code': 403,
    'url.path': '/x',
    'server.address': 'api.example',
    'error.type': 'policy_denied',
  })
  const nothing = { res: { headersSent: false, statusCode: 200 }, ending: 'broken', target: undefined }
  const [cut] = spansOf(nothing)
  t.equal(cut?.isError, true)
  t.equal(cut?.attributes['http.response.status_code'], undefined)
  t.equal(cut?.attributes['url.path'], undefined)
  const [tunnel] = spansOf({ addressing: { road: 'tunnel' }, failure: 'reset', sentAt: undefined })
  t.equal(tunnel?.attributes['url.path'], undefined, 'a tunnel has no path')
})

t.test('a request with a trace is recorded with its attempts, and what its decision was', async t => {
  const decision = { decision: 'Allow', policy: 'p', rule: null, risk: { score: 0.1 } }
  const meter = { usage: { model: 'm', tokens: { input: 1, output: 2 } } }
  const [server, client] = spansOf({ fields: traced, sentAt: 200, upstreamStatus: 404, decision, meter })
  t.match(server, {
    parentId: '00f067aa0ba902b7',
    attributes: { 'agent_gateway.policy': 'p', 'agent_gateway.risk': 0.1 },
  })
  t.equal(server?.attributes['agent_gateway.rule'], undefined)
  t.match(client, { parentId: server?.spanId, startedAt: 4_200, isError: true })
  t.match(client?.attributes, {
    'http.response.status_code': 404,
    'gen_ai.response.model': 'm',
    'gen_ai.usage.input_tokens': 1,
  })
})

t.test('a call of a model is named as OpenTelemetry names it, from what was read anyway', async t => {
  const at = (path: string, more: object) => {
    const [, client] = spansOf({ fields: traced, sentAt: 200, target: { path, origin: {} }, ...more })
    return client?.attributes
  }
  const read = (provider: string, model?: string) => ({ names: { llm: { provider, model } } })
  const cases = [
    ['/v1/chat/completions', read('openai', 'm'), 'chat', 'openai', 'm'],
    ['/v1/messages', read('anthropic', 'm'), 'chat', 'anthropic', 'm'],
    ['/v1beta/models/g:streamGenerateContent', read('gemini', 'g'), 'generate_content', 'gcp.gemini', 'g'],
    ['/v1beta/models/g:batchEmbedContents', read('gemini', 'g'), 'embeddings', 'gcp.gemini', 'g'],
    ['/api/generate', read('ollama'), 'text_completion', 'ollama', undefined],
    ['/v1/embeddings', { meter: { provider: 'mistral', called: undefined } }, 'embeddings', 'mistral_ai', undefined],
    ['/model/c/converse', { meter: { provider: 'aws', called: 'c' } }, 'chat', 'aws.bedrock', 'c'],
    ['/v1/images/edits', { meter: { provider: 'other' }, ...read('openai', 'x'.repeat(201)) }],
    ['/v1/chat/completions', { names: { llm: undefined, mcp: undefined } }],
  ] as const
  for (const [path, more, operation, provider, model] of cases) {
    const found = at(path, more)
    const named = ['operation.name', 'provider.name', 'request.model'].map(name => found?.[`gen_ai.${name}`])
    t.strictSame(named, [operation, provider, model], path)
  }
})

t.test('each attempt has a span, and the wait for a person', async t => {
  const trace = {
    ...{ traceId: 't', spanId: 's', parentId: undefined, isKept: true, clientId: 'c2' },
    earlier: [{ spanId: 'c1', from: 200, to: 300 }],
  }
  const [, first, second] = spansOf({ trace, sentAt: 200, upstreamStatus: 200 })
  t.match(first, { spanId: 'c1', attributes: { 'error.type': 'reset' }, isError: true })
  t.match(second, { spanId: 'c2', startedAt: 4_300, attributes: { 'http.request.resend_count': 1 }, isError: false })
  const review = { from: 300, to: 800 }
  const [, waited] = spansOf({ trace: { ...trace, earlier: [] }, review, hitlId: 'h' })
  t.match(waited, { kind: 'internal', name: 'review', attributes: { 'agent_gateway.hitl.id': 'h' }, startedAt: 4_300 })
})
