/** Threat T13 of SECURITY.md. */

import t from 'tap'
import { forge, hmac } from '../fixtures/forge.ts'
import { startGateway } from '../fixtures/gateway.ts'
import { startIdentityProvider } from '../fixtures/idp.ts'
import { startOrigin } from '../fixtures/origin.ts'
import { issuance } from '../fixtures/tokens.ts'

const origin = await startOrigin(t)
const gateway = await startGateway(t, { config: { System: { RateLimit: { Burst: 10_000 } } } })
await gateway.policy({ name: 'held', default: 'Hitl' })
const { token } = await gateway.agent()
const other = (await gateway.agent({ policyName: 'held' })).token

t.beforeEach(() => {
  origin.seen.length = 0
})

const encoded = (text: string) => [...text].map(char => `%${char.charCodeAt(0).toString(16)}`).join('')
const half = (text: string) => text.replaceAll('.', '%2E').replaceAll('e', '%65')
const basic = (text: string) => `Basic ${Buffer.from(`user:${text}`).toString('base64')}`

/** Where a token was seen to leave, or might. */
const places: Readonly<Record<string, (text: string) => { path?: string; headers?: Record<string, string> }>> = {
  'the query': text => ({ path: `/?token=${text}` }),
  'the query, encoded': text => ({ path: `/?token=${encoded(text)}` }),
  'the query, encoded in part': text => ({ path: `/?a=1&b=${half(text)}&c=2` }),
  'the query, encoded twice': text => ({ path: `/?token=${encodeURIComponent(half(text))}` }),
  'the path': text => ({ path: `/a/${text}/b` }),
  'the path, encoded': text => ({ path: `/a;t=${half(text)}` }),
  Authorization: text => ({ headers: { Authorization: `Bearer ${text}` } }),
  'Authorization as Basic': text => ({ headers: { Authorization: basic(text) } }),
  'X-Api-Key': text => ({ headers: { 'X-Api-Key': text } }),
  'any field, amid others': text => ({ headers: { 'X-Any': `{"a":"${text}"}` } }),
  Cookie: text => ({ headers: { Cookie: `a=1; t=${text}; b=2` } }),
  'Cookie, encoded': text => ({ headers: { Cookie: `t=${encoded(text)}` } }),
  Referer: text => ({ headers: { Referer: `https://a.example/?t=${text}` } }),
}

for (const [place, make] of Object.entries(places)) {
  t.test(`a token of the gateway in ${place} is refused, and shown nowhere`, async t => {
    for (const [agent, stray] of [
      [token, token],
      [token, other],
      [token, gateway.adminToken],
      [other, other],
    ] as const) {
      const { path = '/', headers = {} } = make(stray)
      const answer = await gateway.proxy(agent, origin.url + path, { headers })
      t.equal(answer.status, 400)
      t.equal(answer.headers.get('gateway-error'), 'token_misplaced')
      t.notMatch(await answer.text(), stray.slice(-20))
    }
    t.strictSame(origin.seen, [])
  })
}

t.test('no line of the log and no held request has a token', async t => {
  const told = JSON.stringify(gateway.log) + (await gateway.manage('GET', '/hitl')).text
  for (const secret of [token, other, gateway.adminToken]) t.notOk(told.includes(secret.slice(-20)))
  t.match(
    gateway.log.find(({ refusal }) => refusal === 'token_misplaced'),
    { path: undefined, status: 400 },
  )
})

t.test('tokens of others pass: of another issuer, and what only claims to be of this one', async t => {
  const payload = { iss: issuance.Issuer, sub: 'x', aud: 'elsewhere', exp: 5, padding: 'x'.repeat(60) }
  const header = { alg: 'HS256', typ: 'JWT' }
  for (const claims of [payload, { ...payload, iss: 'https://idp.example' }]) {
    const foreign = forge(header, claims, hmac('a key that is not the gateway’s'))
    const answer = await gateway.proxy(token, `${origin.url}/?t=${foreign}`, { headers: { Authorization: foreign } })
    t.equal(answer.status, 200)
  }
  t.equal(origin.seen.length, 2)
})

t.test('an access token of the identity provider is refused in a second place as well', async t => {
  const { authority, passwordGrant } = await startIdentityProvider(t)
  const Jwt = { Authority: authority, Audience: 'gateway', RequireHttpsMetadata: false }
  const ExternalIdentity = { Provider: 'Jwt', Jwt }
  const trusting = await startGateway(t, { config: { Security: { AgentAuth: { ExternalIdentity } } } })
  await trusting.agent({ externalSubject: 'user-1' })
  const { access_token: external } = await passwordGrant('user-1')
  t.equal((await trusting.proxy(external, origin.url)).status, 200)
  const twice = await trusting.proxy(external, origin.url, { headers: { Authorization: `Bearer ${external}` } })
  t.equal(twice.headers.get('gateway-error'), 'token_misplaced')
  t.equal(origin.seen.length, 1)
})
