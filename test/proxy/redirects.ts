/** Threat T62 of SECURITY.md, with clients that follow redirects. One that keeps cookies: test/system/curl.ts. */
import t from 'tap'
import { eventually, startGateway } from '../fixtures/gateway.ts'
import { startOrigin } from '../fixtures/origin.ts'

const gateway = await startGateway(t)
const { token } = await gateway.agent()
const headers = { 'Gateway-Authorization': `Bearer ${token}` }

t.test('a client that follows a redirect to another host goes through the gateway', async t => {
  const third = await startOrigin(t)
  const origin = await startOrigin(t, (_req, res) => res.writeHead(302, { Location: `${third.url}/there` }).end())
  const answer = await fetch(`${gateway.url}/proxy/${origin.url}/here`, { headers })
  t.equal(answer.status, 200)
  t.equal(answer.url, `${gateway.url}/proxy/${third.url}/there`)
  t.equal(third.seen.length, 1)
  t.equal(third.seen[0]?.headers['gateway-authorization'], undefined, 'the token stays with the gateway')
  t.equal(third.seen[0]?.headers.via, '1.1 agent-gateway')
})

t.test('a redirect by path alone stays at its upstream', async t => {
  const origin = await startOrigin(t, (req, res) => {
    if (req.url === '/v1/old') res.writeHead(308, { Location: '../v2/new?a=%2F' }).end()
    else res.end(`${req.method} ${req.url}`)
  })
  const answer = await fetch(`${gateway.url}/proxy/${origin.url}/v1/old`, { headers, method: 'POST' })
  t.equal(await answer.text(), 'POST /v2/new?a=%2F')
})

t.test('a redirect to the gateway itself is refused as any call to it', async t => {
  const gateway = await startGateway(t, { alone: 'it knows its own address, and not that of a balancer' })
  const { token } = await gateway.agent()
  const origin = await startOrigin(t, (_req, res) => res.writeHead(302, { Location: `${gateway.url}/agents` }).end())
  const answer = await gateway.proxy(token, `${origin.url}/`, { redirect: 'follow' })
  t.equal(answer.status, 403)
  t.equal(answer.headers.get('gateway-error'), 'egress_denied')
})

t.test('the answer to a held request points back at the gateway too', async t => {
  const review = await gateway.policy({ name: 'review-all', default: 'Hitl' })
  const held = await gateway.agent({ policyName: review })
  const origin = await startOrigin(t, (_req, res) => res.writeHead(303, { Location: '/done' }).end())
  const waiting = gateway.proxy(held.token, origin.url, { headers: { Prefer: 'wait=20' } })
  t.equal((await gateway.manage('POST', `/hitl/${await heldId()}/approve`, {})).status, 303)
  t.equal((await waiting).headers.get('location'), `/proxy/${origin.url}/done`)
})

/** Id of the one request that is held, once it is. */
async function heldId(): Promise<string> {
  const list = await eventually(
    async () => JSON.parse((await gateway.manage('GET', '/hitl')).text) as { id: string }[],
    found => found.length > 0,
  )
  return list[0]?.id ?? ''
}
