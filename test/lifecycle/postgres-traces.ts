/** One trace over three gateways on one database. */
import t from 'tap'
import { newId } from '../../src/telemetry/tracing/sampling.ts'
import { attributeOf, startCollector } from '../fixtures/collector.ts'
import { fetchDocumented } from '../fixtures/documented.ts'
import { onDatabase, startGateway } from '../fixtures/gateway.ts'
import { startOrigin } from '../fixtures/origin.ts'
import { createSchema } from '../fixtures/postgres.ts'
import { careful } from '../fixtures/review.ts'

t.test(
  'a request held on one, approved on the second, and approved again, sent and read on the third is one trace, each span once',
  async t => {
    const [collector, origin] = [await startCollector(t), await startOrigin(t)]
    const config = {
      ...onDatabase(await createSchema(t)),
      ...{ Policies: [{ name: 'allow-all', default: 'Allow' }, careful], System: { Server: { Threads: 1 } } },
      Telemetry: { Tracing: { Url: collector.url, Ratio: 0 } },
    }
    const [a, b, c] = await Promise.all([
      startGateway(t, { config }),
      startGateway(t, { config }),
      startGateway(t, { config }),
    ])
    const bot = await a.agent({ policyName: 'careful' })
    const people = [
      await a.agent({ roles: ['reviewer'], ownerId: 'first' }),
      await a.agent({ roles: ['reviewer'], ownerId: 'second' }),
    ] as const
    const traceId = newId(16)
    const fields = (token: string, spanId: string) => ({
      Authorization: `Bearer ${token}`,
      traceparent: `00-${traceId}-${spanId}-01`,
    })
    const [asking, agreeing, deciding, reading] = [newId(8), newId(8), newId(8), newId(8)]
    // PUT needs two approvals.
    const init = { method: 'PUT', body: 'x', headers: { traceparent: `00-${traceId}-${asking}-01` } }
    const held = await a.proxy(bot.token, `${origin.url}/held`, init)
    t.equal(held.status, 202)
    const id = held.headers.get('gateway-hitl-id')
    const approve = (on: typeof a, token: string, spanId: string) =>
      fetchDocumented(`${on.url}/hitl/${id}/approve`, { method: 'POST', headers: fields(token, spanId) })
    t.equal((await approve(b, people[0].token, agreeing)).status, 202)
    t.equal(origin.seen.length, 0)
    t.equal((await approve(c, people[1].token, deciding)).status, 200)
    const answer = await fetchDocumented(`${c.url}/hitl/${id}/response`, { headers: fields(bot.token, reading) })
    t.equal(answer.status, 200)

    const spans = await collector.trace(traceId, 5)
    t.equal(new Set(spans.map(({ spanId }) => spanId)).size, 5)
    const named = (name: string) => spans.filter(span => span.name === name)
    const [asked, verdicts, read] = ['PUT /proxy', 'POST /hitl/{id}/approve', 'GET /hitl/{id}/response'].map(named)
    const sent = named('PUT')
    t.match(asked, [{ kind: 2, parentSpanId: asking }])
    t.strictSame(new Set(verdicts!.map(({ parentSpanId }) => parentSpanId)), new Set([agreeing, deciding]))
    const last = verdicts!.find(({ parentSpanId }) => parentSpanId === deciding)!
    t.match(read, [{ kind: 2, parentSpanId: reading }])
    t.match(sent, [{ kind: 3, parentSpanId: last.spanId, links: [{ traceId, spanId: asked![0]!.spanId }] }])
    t.equal(attributeOf(sent[0]!, 'agent_gateway.hitl.id'), id)
    t.match(origin.seen[0]?.headers, { traceparent: `00-${traceId}-${sent[0]!.spanId}-01` })
    const services = collector.resources.map(
      resource => /service\.instance\.id[^}]*"stringValue":"([^"]+)/.exec(JSON.stringify(resource))?.[1],
    )
    t.equal(new Set(services).size, 3)
  },
)
