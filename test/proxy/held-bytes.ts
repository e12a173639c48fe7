/** Threat T31 of SECURITY.md: bodies that are held to decide on take so much memory, for one agent and for all. */

import t, { type Test } from 'tap'
import { eventually, startGateway, type TestAgent, type TestGateway } from '../fixtures/gateway.ts'
import { startOrigin } from '../fixtures/origin.ts'
import { openRaw } from '../fixtures/raw.ts'
import { scrape } from '../fixtures/scrape.ts'

/** Half of what one agent may have held. */
const size = 131_072
const settings = {
  Proxy: { MaxHeldBytes: size * 8, MaxEvaluatedBodyBytes: size },
  HumanInTheLoop: { MaxStoredBodyBytes: size },
  Trust: { QuarantineDenials: 0, QuarantineBelow: 0 },
}
const conditions = [{ field: 'input.body.kind', operator: 'eq', value: 'bad' }]
const reads = { name: 'reads', default: 'Allow', rules: [{ name: 'bad', effect: 'Deny', conditions }] }
const body = `{"kind":"good","text":"${'x'.repeat(size - 100)}"}`

async function start(t: Test, threads: number) {
  const origin = await startOrigin(t, (req, res) => void req.resume().once('end', () => res.end('ok')))
  const gateway = await startGateway(t, {
    config: { System: { Server: { Threads: threads } }, ...settings },
    alone: 'the memory for bodies is a gateway’s own',
  })
  await gateway.policy(reads)
  const agents = [await gateway.agent({ policyName: 'reads' }), await gateway.agent({ policyName: 'reads' })] as const
  return { origin, gateway, agents }
}

/** A body of which all but the last byte has come. */
async function sendMost(t: Test, gateway: TestGateway, agent: TestAgent, url: string) {
  const client = await openRaw(t, gateway.port)
  const head = [`POST /proxy/${url}/ HTTP/1.1`, 'Host: g', `Gateway-Authorization: Bearer ${agent.token}`]
  // No length is announced: what counts is what came.
  const fields = ['Content-Type: application/json', 'Transfer-Encoding: chunked']
  client.write(`${[...head, ...fields].join('\r\n')}\r\n\r\n${body.length.toString(16)}\r\n${body.slice(0, -1)}`)
  return client
}

const post = (gateway: TestGateway, agent: TestAgent, url: string) =>
  gateway.proxy(agent.token, `${url}/`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body })

const heldBytes = async (gateway: TestGateway) =>
  scrape((await gateway.manage('GET', '/metrics')).text).values.get('agent_gateway_held_body_bytes') ?? -1

for (const threads of [1, 2]) {
  t.test(`one agent fills its part and another has its own, ${threads} threads`, async t => {
    const { origin, gateway, agents } = await start(t, threads)
    const [greedy, other] = agents
    const slow = [await sendMost(t, gateway, greedy, origin.url), await sendMost(t, gateway, greedy, origin.url)]
    t.ok(
      (await eventually(
        () => heldBytes(gateway),
        held => held > 2 * (body.length - 2),
      )) > 0,
    )
    const refused = await post(gateway, greedy, origin.url)
    t.equal(refused.headers.get('gateway-error'), 'busy')
    t.strictSame([refused.status, refused.headers.get('retry-after')], [503, '1'])
    t.equal((await post(gateway, other, origin.url)).status, 200)
    const before = origin.seen.length

    slow[0]?.write(`${body.slice(-1)}\r\n0\r\n\r\n`)
    t.match(await slow[0]?.until(/200 OK/), /200 OK/)
    t.equal(
      (
        await eventually(
          () => post(gateway, greedy, origin.url),
          answer => answer.ok,
        )
      ).status,
      200,
    )
    t.ok(origin.seen.length > before)
    const told = () => gateway.log.find(({ limit }) => limit === 'agent_held_bytes')
    t.match(await eventually(told, line => line !== undefined), { agentId: greedy.id })
  })
}

t.test('bodies whose clients leave, that are refused, denied or held for review give their bytes back', async t => {
  const { origin, gateway, agents } = await start(t, 1)
  const [agent] = agents
  const bad = body.replace('good', 'bad')
  for (let i = 0; i < 12; i++) {
    const slow = await sendMost(t, gateway, agent, origin.url)
    await eventually(
      () => gateway.gateway.inFlight(),
      inFlight => inFlight === 1,
    )
    slow.socket.destroy()
    await eventually(
      () => gateway.gateway.inFlight(),
      inFlight => inFlight === 0,
    )
    const denied = await gateway.proxy(agent.token, `${origin.url}/`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: bad,
    })
    t.equal(denied.headers.get('gateway-error'), 'policy_denied')
    t.equal((await post(gateway, agent, origin.url)).status, 200)
  }
  t.equal(
    await eventually(
      () => heldBytes(gateway),
      held => held === 0,
    ),
    0,
  )
  t.notOk(gateway.log.some(({ limit }) => limit !== undefined))
})
