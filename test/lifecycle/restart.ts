import t from 'tap'
import { startGateway } from '../fixtures/gateway.ts'
import { startOrigin } from '../fixtures/origin.ts'
import { testdir } from '../fixtures/testdir.ts'

t.test('a restart loses nothing that was acknowledged: agents, policies, tokens, held requests', async t => {
  const origin = await startOrigin(t)
  const directory = testdir(t)
  const first = await startGateway(t, { directory })
  const policy = await first.policy({ name: 'ask', default: 'Hitl' })
  const agent = await first.agent({ policyName: policy })
  const revoked = await first.agent()
  await first.manage('POST', `/agents/${revoked.id}/revoke`)
  const body = Buffer.from(Array.from({ length: 256 }, (_, i) => i))
  const held = await first.proxy(agent.token, `${origin.url}/held`, { method: 'POST', body })
  t.equal(held.status, 202)
  const status = held.headers.get('location')!
  const before = JSON.parse((await first.manage('GET', status)).text)
  await first.close()

  const second = await startGateway(t, { directory })
  const after = JSON.parse((await second.manage('GET', status)).text)
  t.equal(after.status, 'Pending')
  t.equal(after.request.digest, before.request.digest)
  t.equal(after.request.expiresAt, before.request.expiresAt)
  t.equal((await second.proxy(revoked.token, origin.url)).status, 403, 'revoked stays revoked')
  t.match(JSON.parse((await second.manage('GET', `/agents/${agent.id}`)).text), { policyName: 'ask', status: 'Active' })
  t.strictSame(origin.seen, [])

  const approved = await second.manage('POST', `/hitl/${after.id}/approve`)
  t.equal(approved.status, 200)
  t.equal(approved.text, 'hello from upstream')
  t.strictSame(origin.seen[0]?.body, body, 'byte for byte what was held')
  t.equal((await second.proxy(agent.token, origin.url)).status, 202, 'the token of before is still good')
})
