/** Opaque tokens of a real provider, oidc-provider. */

import t from 'tap'
import { createClock } from '../fixtures/clock.ts'
import { startGateway } from '../fixtures/gateway.ts'
import { startOrigin } from '../fixtures/origin.ts'
import { startOidcProvider } from './fixtures/oidc-provider.ts'

const provider = await startOidcProvider(t)
const origin = await startOrigin(t)
const clock = createClock(Date.now())
const ExternalIdentity = {
  Provider: 'Jwt',
  Jwt: { Authority: provider.issuer, Audience: 'agent-gateway', RequireHttpsMetadata: false },
  Introspection: { ClientId: 'gateway', ClientSecret: provider.clientSecret },
}
const gateway = await startGateway(t, { clock, config: { Security: { AgentAuth: { ExternalIdentity } } } })
const body = { name: 'robot', ownerId: 'team-a', policyName: 'allow-all', externalSubject: 'robot' }
const registered = JSON.parse((await gateway.manage('POST', '/agents', body)).text)
const statusWith = async (token: string) => (await gateway.proxy(token, origin.url)).status

t.test('an agent that is bound to its client needs no secret, and calls with its opaque token', async t => {
  t.equal(registered.clientSecret, undefined)
  const token = await provider.token()
  t.equal(token.split('.').length, 1, 'opaque')
  for (let times = 0; times < 3; times++) t.equal(await statusWith(token), 200)
  t.equal(provider.asked(), 1)
  t.notMatch(JSON.stringify(origin.seen), token)
  const stray = await gateway.proxy(token, `${origin.url}/?token=${token}`)
  t.equal(stray.headers.get('gateway-error'), 'token_misplaced')
})

t.test('the token is exchanged for one of the gateway', async t => {
  const credentials = { agentId: registered.id, externalToken: await provider.token() }
  const answer = await gateway.manage('POST', '/tokens', credentials, null)
  t.equal(await statusWith(JSON.parse(answer.text).accessToken), 200)
})

t.test('a token that the provider revokes ends within a minute', async t => {
  const token = await provider.token()
  t.equal(await statusWith(token), 200)
  t.equal((await provider.revoke(token)).status, 200)
  clock.advance(60_000)
  t.equal(await statusWith(token), 401)
})

t.test('a made-up token is refused', async t => {
  const answer = await gateway.proxy('a-token-that-nobody-has-issued', origin.url)
  t.equal(answer.status, 401)
  t.match(answer.headers.get('www-authenticate'), /is not active at the identity provider/)
})
