import t from 'tap'
import { startGateway } from '../fixtures/gateway.ts'

const gateway = await startGateway(t)
const login = (agentId: string, clientSecret: string) =>
  gateway.manage('POST', '/tokens', { agentId, clientSecret }, null)

t.test('a new secret is returned this once, and the old one stops working at once', async t => {
  const { id, clientSecret } = await gateway.agent()
  const answer = await gateway.manage('POST', `/agents/${id}/rotate-secret`)
  t.equal(answer.status, 200)
  const rotated = JSON.parse(answer.text).clientSecret
  t.equal((await login(id, clientSecret)).status, 401)
  t.equal((await login(id, rotated)).status, 200)
  t.notMatch((await gateway.manage('GET', `/agents/${id}`)).text, rotated)
})

t.test('only an admin may, and only for an agent that is there', async t => {
  const { id, token } = await gateway.agent()
  t.equal((await gateway.manage('POST', `/agents/${id}/rotate-secret`, undefined, token)).status, 403)
  const nobody = '00000000-0000-4000-8000-000000000000'
  t.equal((await gateway.manage('POST', `/agents/${nobody}/rotate-secret`)).status, 404)
})
