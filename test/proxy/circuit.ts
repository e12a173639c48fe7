/** Threat T30 of SECURITY.md. */

import t from 'tap'
import { createClock } from '../fixtures/clock.ts'
import { startGateway } from '../fixtures/gateway.ts'
import { startOrigin } from '../fixtures/origin.ts'
import { openRaw } from '../fixtures/raw.ts'

t.test('five failures open the circuit of that origin alone; after its time one probe closes it', async t => {
  let status = 503
  const sick = await startOrigin(t, (_req, res) => {
    res.statusCode = status
    res.end()
  })
  const well = await startOrigin(t)
  const clock = createClock(Date.now())
  const gateway = await startGateway(t, { clock, alone: 'a circuit is a gateway’s own' })
  const { token } = await gateway.agent()
  const call = async (url: string) => {
    const answer = await gateway.proxy(token, `${url}/`)
    await answer.text()
    return answer
  }
  for (let i = 0; i < 5; i++) t.equal((await call(sick.url)).headers.get('gateway-error'), null, 'passed on as it is')
  const refused = await call(sick.url)
  t.equal(refused.status, 503)
  t.equal(refused.headers.get('gateway-error'), 'circuit_open')
  t.equal(refused.headers.get('retry-after'), '30')
  t.equal(sick.seen.length, 5, 'the upstream saw nothing more')
  t.equal((await call(well.url)).status, 200, 'another origin is not touched')

  clock.advance(30_000)
  status = 200
  t.equal((await call(sick.url)).status, 200)
  t.equal((await call(sick.url)).status, 200)
  t.equal(sick.seen.length, 7)
})

t.test('clients that leave and requests that are refused never open a circuit', async t => {
  const origin = await startOrigin(t, (req, res) => {
    if (req.url !== '/hang') res.end('ok')
  })
  const gateway = await startGateway(t, { config: { System: { CircuitBreaker: { Failures: 1 } } } })
  const { token } = await gateway.agent()
  for (let i = 0; i < 3; i++) {
    const leave = new AbortController()
    const call = gateway.proxy(token, `${origin.url}/hang`, { signal: leave.signal })
    while (origin.seen.length <= i) await new Promise(setImmediate)
    leave.abort()
    await t.rejects(call)
    while (gateway.gateway.inFlight() > 0) await new Promise(setImmediate)
  }
  t.equal((await gateway.proxy(token, `${origin.url}/`)).status, 200)
})

t.test('a body that is waited for to decide on keeps no probe from others', async t => {
  let status = 503
  const origin = await startOrigin(t, (_req, res) => {
    res.statusCode = status
    res.end()
  })
  const clock = createClock(Date.now())
  const gateway = await startGateway(t, { clock, config: { System: { CircuitBreaker: { Failures: 1 } } } })
  const conditions = [{ field: 'input.body.kind', operator: 'eq', value: 'bad' }]
  await gateway.policy({ name: 'reads', default: 'Allow', rules: [{ name: 'bad', effect: 'Deny', conditions }] })
  const [slow, other] = [await gateway.agent({ policyName: 'reads' }), await gateway.agent()]
  t.equal((await gateway.proxy(other.token, origin.url)).status, 503)
  status = 200
  clock.advance(30_000)

  const client = await openRaw(t, gateway.port)
  const fields = `Host: g\r\nGateway-Authorization: Bearer ${slow.token}\r\nContent-Type: application/json\r\n`
  client.write(`POST /proxy/${origin.url}/ HTTP/1.1\r\n${fields}Content-Length: 17\r\nExpect: 100-continue\r\n\r\n`)
  await client.until(/100 Continue/)
  client.write('{ "kind":')
  t.equal((await gateway.proxy(other.token, origin.url)).status, 200)
  client.write(' "good"}')
  t.match(await client.until(/200 OK/), 'HTTP/1.1 200 OK')
  t.equal(origin.seen.length, 3)
})

for (const threads of [1, 2]) {
  t.test(`failures that one agent provokes are held against that agent alone, ${threads} threads`, async t => {
    const origin = await startOrigin(t, (req, res) => {
      res.statusCode = req.url === '/bad' ? 503 : 200
      res.end()
    })
    const gateway = await startGateway(t, {
      config: { System: { Server: { Threads: threads } } },
      alone: 'a circuit is a gateway’s own',
    })
    const [hostile, victim, third] = [await gateway.agent(), await gateway.agent(), await gateway.agent()]
    const call = async (agent: { token: string }, path: string) => {
      const answer = await gateway.proxy(agent.token, `${origin.url}${path}`)
      await answer.text()
      return answer.headers.get('gateway-error') ?? answer.status
    }
    for (let i = 0; i < 20; i++) await call(hostile, '/bad')
    t.equal(await call(hostile, '/'), 'circuit_open')
    t.equal(origin.seen.length, 5)
    for (let i = 0; i < 4; i++) await call(victim, '/bad')
    t.equal(await call(victim, '/'), 200, 'not even with failures of its own')
    await call(victim, '/bad')
    t.equal(await call(third, '/'), 'circuit_open', 'when two agents saw it fail, it is open for all')
  })
}

t.test('an agent whose policy reads the address holds a dead one against itself, not against others', async t => {
  const origin = await startOrigin(t)
  const gateway = await startGateway(t, {
    config: { System: { CircuitBreaker: { Failures: 1 } } },
    lookup: async () => ['127.0.0.9', '127.0.0.1'],
    alone: 'a circuit is a gateway’s own',
  })
  const conditions = [{ field: 'input.destinationClass', operator: 'eq', value: 'public' }]
  await gateway.policy({ name: 'reads', default: 'Allow', rules: [{ name: 'public', effect: 'Deny', conditions }] })
  const [reading, other] = [await gateway.agent({ policyName: 'reads' }), await gateway.agent()]
  const call = async ({ token }: { readonly token: string }) =>
    (await gateway.proxy(token, `http://dual.test:${origin.port}/`)).headers.get('gateway-error')
  t.equal(await call(reading), 'upstream_failed')
  t.equal(await call(reading), 'circuit_open')
  t.equal(await call(other), null, 'it reaches the second address')
})
