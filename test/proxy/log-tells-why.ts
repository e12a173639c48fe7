/** The log says what the agent must not be told: distinct errors of private destinations would map the network. */

import t from 'tap'
import { createClock } from '../fixtures/clock.ts'
import { gatewayThreads, startGateway } from '../fixtures/gateway.ts'
import { startOrigin } from '../fixtures/origin.ts'
import { startReview } from '../fixtures/review.ts'
import { scrape } from '../fixtures/scrape.ts'

t.test('a destination that is refused has its cause in the log, and in no answer', async t => {
  const gateway = await startGateway(t, {
    alone: 'it knows its own address, and not that of a balancer',
    config: { Egress: { DenyHosts: ['denied.example'], DenyCidrs: ['10.0.0.0/8'] } },
    lookup: async () => ['10.1.2.3'],
  })
  const { token } = await gateway.agent()
  const causes = [
    ['http://169.254.169.254/', '169.254.169.254 is metadata'],
    ['http://denied.example/', 'the host is in Egress:DenyHosts'],
    ['http://inside.example/', '10.1.2.3 is in Egress:DenyCidrs'],
    [`http://127.0.0.1:${gateway.port}/`, '127.0.0.1 is the gateway itself'],
  ] as const
  for (const [url] of causes) {
    const answer = await gateway.proxy(token, url)
    t.equal(answer.headers.get('gateway-error'), 'egress_denied', url)
    t.notMatch(await answer.text(), /10\.1\.2\.3|DenyHosts|metadata|itself/)
  }
  const told = (await gateway.exchanges(causes.length)).map(({ cause }) => cause)
  t.strictSame(told.toSorted(), causes.map(([, cause]) => cause).toSorted())
})

t.test('a failure is named by kind where the name can only be public; it is counted and logged everywhere', async t => {
  const gateway = await startGateway(t, {
    alone: 'metrics are a gateway’s own',
    lookup: async name => {
      if (name === 'closed.test') return ['127.0.0.1']
      throw Object.assign(new Error('not found'), { code: 'ENOTFOUND' })
    },
  })
  const { token } = await gateway.agent()
  const ask = async (url: string) => (await gateway.proxy(token, url)).json() as Promise<Record<string, unknown>>
  t.match(await ask('http://api.exmaple.com/'), {
    code: 'upstream_failed',
    failure: 'name_not_found',
    detail: 'The host name of the upstream was not found.',
  })
  const generic = {
    code: 'upstream_failed',
    detail: 'The upstream could not be reached, or the connection broke. The log of the gateway says why.',
  }
  for (const url of ['http://db.internal/', 'http://closed.test:1/']) {
    const problem = await ask(url)
    t.match(problem, generic, url)
    t.notOk('failure' in problem, url)
  }
  const lines = await gateway.exchanges(3)
  t.strictSame(lines.map(({ failure }) => failure).toSorted(), ['name_not_found', 'name_not_found', 'refused'])
  const { values } = scrape((await gateway.manage('GET', '/metrics')).text)
  t.equal(values.get('agent_gateway_upstream_failures_total{kind="name_not_found"}'), 2)
  t.equal(values.get('agent_gateway_upstream_failures_total{kind="refused"}'), 1)
})

for (const threads of new Set([gatewayThreads, 2])) {
  t.test(`a circuit that opens, and one that closes, has a line, ${threads} threads`, async t => {
    let status = 503
    const origin = await startOrigin(t, (_req, res) => res.writeHead(status).end())
    const System = { Server: { Threads: threads }, CircuitBreaker: { Failures: 2 } }
    const clock = createClock()
    const gateway = await startGateway(t, { clock, config: { System }, alone: 'a circuit is a gateway’s own' })
    const { id, token } = await gateway.agent()
    const ask = async () => (await gateway.proxy(token, origin.url)).headers.get('gateway-error')
    await ask()
    await ask()
    t.equal(await ask(), 'circuit_open')
    status = 200
    clock.advance(30_000)
    t.equal(await ask(), null)
    while (!gateway.log.some(({ message }) => message === 'circuit closed')) await new Promise(setImmediate)
    const changes = gateway.log.filter(({ message }) => message.startsWith('circuit '))
    t.match(changes, [
      { message: 'circuit opened', level: 'warn', origin: origin.url, agentId: id },
      { message: 'circuit closed', level: 'info', origin: origin.url, agentId: id },
    ])
    t.equal(changes.length, 2)
  })
}

t.test('an approved request that was really sent has a line, and so has one that was not', async t => {
  const review = await startReview(t)
  const sent = await review.hold('/orders')
  const held = await review.proxy(review.bot.token, 'http://127.0.0.1:1/refunds', { method: 'POST' })
  const unsent = held.headers.get('gateway-hitl-id') as string
  await (await review.approve(sent)).text()
  const find = (id: string) => review.log.find(line => line.hitlId === id && line.message.startsWith('an approved'))
  t.match(find(sent), {
    message: 'an approved request was sent',
    agentId: review.bot.id,
    method: 'POST',
    origin: review.origin.url,
    path: '/orders',
    status: 200,
  })
  t.equal((await review.approve(unsent)).status, 502)
  t.match(find(unsent), { message: 'an approved request was not sent', refusal: 'upstream_failed', failure: 'refused' })
})
