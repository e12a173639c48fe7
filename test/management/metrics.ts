import { once } from 'node:events'
import { connect } from 'node:net'
import t from 'tap'
import { gatewayThreads, startGateway, type TestGateway } from '../fixtures/gateway.ts'
import { startOrigin } from '../fixtures/origin.ts'
import { scrape } from '../fixtures/scrape.ts'

const rules = [
  { name: 'no', effect: 'Deny', conditions: [{ field: 'input.path', operator: 'startsWith', value: '/no' }] },
  { name: 'ask', effect: 'Hitl', conditions: [{ field: 'input.path', operator: 'startsWith', value: '/ask' }] },
]

/** The values that are not 0, without the prefix. */
async function read({ manage }: TestGateway): Promise<Readonly<Record<string, number>>> {
  const { values } = scrape((await manage('GET', '/metrics')).text)
  const counted = [...values].filter(([, value]) => value !== 0)
  return Object.fromEntries(counted.map(([name, value]) => [name.replace('agent_gateway_', ''), value]))
}

t.test('counters count what happened', async t => {
  const origin = await startOrigin(t, (req, res) => {
    req.resume()
    res.statusCode = req.url === '/gone' ? 404 : 200
    res.end('12345')
  })
  const gateway = await startGateway(t, {
    // A shared rate lets one request more pass while the database is asked.
    config: { System: { RateLimit: { Burst: 7, RequestsPerMinute: 1 } }, Fleet: { RateLimits: 'PerGateway' } },
    alone: 'metrics are a gateway’s own',
  })
  const { token } = await gateway.agent({ policyName: await gateway.policy({ name: 'p', default: 'Allow', rules }) })
  const call = async (path: string, init?: RequestInit) => {
    const answer = await gateway.proxy(token, path.startsWith('/') ? origin.url + path : path, init)
    return (await answer.text()) && answer.status
  }
  t.equal(await call('/a'), 200)
  t.equal(await call('/b', { method: 'POST', body: 'xyz' }), 200)
  t.equal(await call('/gone'), 404)
  t.equal(await call('/no'), 403)
  t.equal(await call('/ask'), 202)
  t.equal(await call('http://127.0.0.1:1/'), 502)
  t.equal(await call('not-a-url'), 400)
  t.equal(await call('/late'), 429)
  t.equal((await gateway.proxy('wrong', `${origin.url}/`)).status, 401)
  while (gateway.gateway.inFlight() > 0) await new Promise(setImmediate)
  const counted = await read(gateway)
  t.match(counted, {
    'requests_total{outcome="forwarded"}': 3,
    'requests_total{outcome="policy_denied"}': 1,
    'requests_total{outcome="suspended"}': 1,
    'requests_total{outcome="upstream_failed"}': 1,
    'requests_total{outcome="invalid_target"}': 1,
    'requests_total{outcome="rate_limited"}': 1,
    'requests_total{outcome="unauthenticated"}': 1,
    'decisions_total{effect="allow"}': 4,
    'decisions_total{effect="deny"}': 1,
    'decisions_total{effect="hitl"}': 1,
    'upstream_responses_total{class="2xx"}': 2,
    'upstream_responses_total{class="4xx"}': 1,
    'upstream_failures_total{kind="refused"}': 1,
    upstream_request_body_bytes_total: 3,
    upstream_response_body_bytes_total: 15,
    'request_duration_seconds_count{kind="plain"}': 8,
    'request_duration_seconds_count{kind="held"}': 1,
    overhead_seconds_count: 4,
    decision_duration_seconds_count: 6,
    upstream_first_byte_seconds_count: 3,
    'management_requests_total{class="2xx"}': counted['management_requests_total{class="2xx"}'],
    hitl_pending: 1,
  })
  const [hits = 0, misses = 0] = ['hit', 'miss'].map(cache => counted[`token_checks_total{cache="${cache}"}`])
  t.equal(hits + misses, 9)
  // Each thread verifies a token once.
  t.ok(misses >= 2 && misses <= 1 + gatewayThreads, `${misses} tokens were verified`)
  t.ok(counted['client_connections']! >= 1)
  t.equal(counted['requests_in_flight'], undefined)
  t.equal(counted['circuits_open'], undefined)
})

t.test('an open circuit is counted, and a head that is refused before the road begins', async t => {
  const gateway = await startGateway(t, {
    config: { System: { CircuitBreaker: { Failures: 1 } } },
    alone: 'metrics are a gateway’s own',
  })
  const { token } = await gateway.agent()
  t.equal((await gateway.proxy(token, 'http://127.0.0.1:1/')).status, 502)
  t.equal((await gateway.proxy(token, 'http://127.0.0.1:1/')).status, 503)
  for (const request of ['GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n', 'nonsense\r\n\r\n']) {
    const socket = connect(gateway.port, '127.0.0.1').end(request)
    socket.resume()
    await once(socket, 'close')
  }
  t.match(await read(gateway), {
    circuits_open: 1,
    'requests_total{outcome="circuit_open"}': 1,
    'requests_total{outcome="invalid_request"}': 2,
  })
})

t.test('GET /metrics is for auditors and admins, and nobody learns of agents, hosts or tokens from it', async t => {
  const origin = await startOrigin(t)
  const gateway = await startGateway(t)
  const agent = await gateway.agent({ name: 'a-name' })
  await (await gateway.proxy(agent.token, `${origin.url}/a-path`)).text()
  t.equal((await gateway.manage('GET', '/metrics', undefined, null)).status, 401)
  t.equal((await gateway.manage('GET', '/metrics', undefined, agent.token)).status, 403)
  const auditor = await gateway.agent({ roles: ['auditor'] })
  const { status, headers, text } = await gateway.manage('GET', '/metrics', undefined, auditor.token)
  t.equal(status, 200)
  t.equal(headers.get('content-type'), 'text/plain; version=0.0.4; charset=utf-8')
  for (const secret of [agent.id, agent.token, 'a-name', 'a-path', '127.0.0.1']) t.notOk(text.includes(secret), secret)
})

t.test('Telemetry:Metrics:Public needs no token', async t => {
  const open = await startGateway(t, { config: { Telemetry: { Metrics: { Public: true } } } })
  const { status, text } = await open.manage('GET', '/metrics', undefined, null)
  t.equal(status, 200)
  t.doesNotThrow(() => scrape(text))
})

t.test(
  'T32: many readers ask the database about once a second, and those that take nothing keep nobody waiting',
  async t => {
    const origin = await startOrigin(t)
    const gateway = await startGateway(t, {
      config: { Telemetry: { Metrics: { Public: true } } },
      alone: 'metrics are a gateway’s own',
    })
    const { token } = await gateway.agent()
    const page = async () => (await gateway.manage('GET', '/metrics', undefined, null)).text
    const reads = async () =>
      scrape(await page()).values.get('agent_gateway_store_duration_seconds_count{operation="read"}')!
    const stalled = Array.from({ length: 20 }, () => {
      const socket = connect(gateway.port, '127.0.0.1')
        .on('error', () => {})
        .pause()
      socket.write('GET /metrics HTTP/1.1\r\nHost: g\r\n\r\n'.repeat(20))
      t.teardown(() => socket.destroy())
      return socket
    })
    const [started, before] = [performance.now(), await reads()]
    for (let times = 0; times < 4; times++) await Promise.all(Array.from({ length: 20 }, page))
    t.equal((await gateway.proxy(token, `${origin.url}/`)).status, 200)
    const seconds = (performance.now() - started) / 1e3
    const asked = (await reads()) - before
    t.ok(asked <= 10 * (seconds + 2), `${asked} reads of the database for 80 pages in ${seconds} s`)
    t.ok(stalled.every(socket => !socket.destroyed))
  },
)
