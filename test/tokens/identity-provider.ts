import t from 'tap'
import { isRefusal } from '../../src/base/refusals.ts'
import { systemClock } from '../../src/runtime/clock.ts'
import { openTokens } from '../../src/tokens/open.ts'
import { startIdentityProvider } from '../fixtures/idp.ts'
import { openOwnRequests } from '../fixtures/own-requests.ts'
import { agent, externalSettings, other } from '../fixtures/provider.ts'
import { issuance, signingSecret } from '../fixtures/tokens.ts'

const peer = '192.0.2.1'
const agents = {
  byKeyHash: () => undefined,
  get: (id: string) => [agent, other].find(one => one.id === id.toLowerCase()),
  bySubject: (subject: string) => [agent, other].find(one => one.externalSubject === subject),
  trustOf: () => 0.5,
  verifySecret: async () => false,
}

async function open(authority: string, jwt: object = {}) {
  const ownRequests = await openOwnRequests(t)
  return openTokens({
    settings: {
      UseCustomHeader: true,
      CustomHeaderName: 'Gateway-Authorization',
      FallbackToAuthorization: false,
      TokenIssuance: { ...issuance, Secret: signingSecret, PreviousSecrets: [] },
      TokenRequests: { PerAgentPerMinute: 5, PerAddressPerMinute: 20, BcryptCost: 4 },
      ExternalIdentity: {
        ...externalSettings({ Authority: authority, RequireHttpsMetadata: false, ...jwt }),
        Console: { ClientId: undefined, Scope: 'openid' },
      },
    },
    dataDirectory: 'unused',
    clock: systemClock,
    agents,
    codes: { keep: async () => {}, take: async () => undefined },
    fetchDocument: ownRequests.fetch,
    submitForm: ownRequests.submitForm,
    onKeyUse: () => {},
  })
}

t.test('for the console, and for it alone, a token finds the agent that it is bound to', async t => {
  const { authority, passwordGrant } = await startIdentityProvider(t)
  const tokens = await open(authority)
  const { access_token: externalToken } = await passwordGrant('user-1')
  const reply = await tokens.grant({ externalToken, console: true }, peer)
  if (isRefusal(reply)) throw new TypeError(reply.detail)
  t.match(await tokens.verify(reply.token), { sub: agent.id })
  const { access_token: stranger } = await passwordGrant('user-2')
  for (const request of [{ externalToken }, { externalToken: stranger, console: true }, { console: true }]) {
    t.match(await tokens.grant(request, peer), { refusal: 'unauthenticated' })
  }
})

t.test('a token of a password grant is exchanged for an internal one', async t => {
  const { authority, passwordGrant } = await startIdentityProvider(t)
  const tokens = await open(authority)
  const { access_token: externalToken } = await passwordGrant('user-1')
  const reply = await tokens.grant({ agentId: agent.id, externalToken }, peer)
  if (isRefusal(reply)) throw new TypeError(reply.detail)
  t.match(await tokens.verify(reply.token), { sub: agent.id, iss: 'agent-gateway' })
})

t.test('the same token sent directly is the agent that its subject is bound to', async t => {
  const { authority, passwordGrant } = await startIdentityProvider(t)
  const tokens = await open(authority)
  const { access_token: token } = await passwordGrant('user-1')
  const claims = await tokens.verify(token)
  t.match(claims, { sub: agent.id, external_sub: 'user-1', iss: authority, amr: ['pwd'] })
  t.notOk(tokens.verify(token) instanceof Promise, 'known the second time')
})

t.test('a claim that names the agent binds as well, under its configured name', async t => {
  const { authority, passwordGrant } = await startIdentityProvider(t, { gateway_agent: other.id.toUpperCase() })
  const tokens = await open(authority, { AgentIdClaim: 'gateway_agent' })
  const { access_token: externalToken } = await passwordGrant('someone')
  t.match(await tokens.verify(externalToken), { sub: other.id })
  t.notOk(isRefusal(await tokens.grant({ agentId: other.id, externalToken }, peer)))
  t.match(await tokens.grant({ agentId: agent.id, externalToken }, peer), { status: 401 })
})

t.test('a user that no agent is bound to gets in nowhere', async t => {
  const { authority, passwordGrant } = await startIdentityProvider(t)
  const tokens = await open(authority)
  const { access_token: externalToken } = await passwordGrant('user-2')
  t.equal(await tokens.verify(externalToken), 'unknown_agent')
  t.match(await tokens.grant({ agentId: agent.id, externalToken }, peer), { status: 401 })
})

t.test('ID token and refresh token of the same answer are no access tokens', async t => {
  const { authority, passwordGrant } = await startIdentityProvider(t)
  const tokens = await open(authority)
  const { id_token, refresh_token } = await passwordGrant('user-1')
  for (const externalToken of [id_token, refresh_token]) {
    t.match(await tokens.grant({ agentId: agent.id, externalToken }, peer), { status: 401 })
  }
})

t.test('a provider that is down takes nothing from those verified before', async t => {
  const { server, authority, passwordGrant } = await startIdentityProvider(t)
  const tokens = await open(authority)
  const first = await passwordGrant('user-1')
  const second = await passwordGrant('user-1')
  t.match(await tokens.verify(first.access_token), { sub: /./ })
  await server.stop()
  t.match(await tokens.verify(second.access_token), { sub: /./ }, 'by the keys fetched before')
  await server.start(0, '127.0.0.1')
})
