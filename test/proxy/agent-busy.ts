/** Threat T31 of SECURITY.md: one agent has so many requests under way at once, over all threads. */
import type { ServerResponse } from 'node:http'
import t from 'tap'
import { eventually, startGateway } from '../fixtures/gateway.ts'
import { startOrigin } from '../fixtures/origin.ts'
import { scrape } from '../fixtures/scrape.ts'

for (const threads of [1, 2]) {
  t.test(`an agent beyond its requests under way gets 429, another agent does not, ${threads} threads`, async t => {
    const waiting: ServerResponse[] = []
    const origin = await startOrigin(t, (req, res) => void (req.url === '/wait' ? waiting.push(res) : res.end('ok')))
    const gateway = await startGateway(t, {
      alone: 'requests under way are a gateway’s own',
      config: { System: { Server: { Threads: threads }, RateLimit: { MaxInFlight: 3 } } },
    })
    const [greedy, other] = [await gateway.agent(), await gateway.agent()]
    const held = Array.from({ length: 3 }, () => gateway.proxy(greedy.token, `${origin.url}/wait`))
    await eventually(
      () => waiting.length,
      length => length === 3,
    )

    const refused = await gateway.proxy(greedy.token, `${origin.url}/`)
    t.equal(refused.status, 429)
    t.equal(refused.headers.get('gateway-error'), 'agent_busy')
    t.equal(refused.headers.get('retry-after'), '1')
    t.equal(origin.seen.length, 3, 'the upstream saw nothing of it')
    t.equal((await gateway.proxy(other.token, `${origin.url}/`)).status, 200)

    waiting.pop()?.end('done')
    const again = await eventually(
      () => gateway.proxy(greedy.token, `${origin.url}/`),
      ({ status }) => status === 200,
    )
    t.equal(again.status, 200, 'a request that is over gives its place back')
    for (const res of waiting.splice(0)) res.destroy()
    for (const answer of held) await answer.catch(() => {})

    const told = () => gateway.log.filter(({ message }) => message === 'a limit was reached')
    const lines = await eventually(told, ({ length }) => length > 0)
    t.match(lines[0], { level: 'warn', limit: 'agent_requests', agentId: greedy.id })
    t.ok(lines.length <= threads, 'one line a minute')
    const page = scrape((await gateway.manage('GET', '/metrics')).text)
    t.ok((page.values.get('agent_gateway_limits_reached_total{limit="agent_requests"}') ?? 0) >= 1)
  })
}

t.test('refused requests, clients that leave and failures give their places back', async t => {
  const origin = await startOrigin(t, (req, res) => void (req.url === '/hang' || res.end('ok')))
  const gateway = await startGateway(t, { config: { System: { RateLimit: { MaxInFlight: 1 } } } })
  const { token } = await gateway.agent()
  const idle = () =>
    eventually(
      () => gateway.gateway.inFlight(),
      inFlight => inFlight === 0,
    )
  for (let i = 0; i < 3; i++) {
    t.equal((await gateway.proxy(token, 'ftp://nowhere/')).status, 400)
    t.equal((await gateway.proxy(token, 'http://127.0.0.1:9/')).status, 502)
    const leave = new AbortController()
    const call = gateway.proxy(token, `${origin.url}/hang`, { signal: leave.signal })
    await eventually(
      () => origin.seen.length,
      seen => seen === i * 2 + 1,
    )
    leave.abort()
    await t.rejects(call)
    await idle()
    t.equal((await gateway.proxy(token, `${origin.url}/`)).status, 200)
    await idle()
  }
})
