/** Threats T15, T27, T37 of SECURITY.md. */

import t from 'tap'
import { cpuRatio, isAlike } from '../fixtures/cpu-time.ts'
import { startGateway } from '../fixtures/gateway.ts'
import { startIdentityProvider } from '../fixtures/idp.ts'
import { startOrigin } from '../fixtures/origin.ts'
import { openRaw } from '../fixtures/raw.ts'

const secret = 'a-secret-of-the-tests'
const code = (answer: Response) => answer.headers.get('gateway-error')
const origin = await startOrigin(t)
const limits = { PerAddressPerMinute: 100 }
const gateway = await startGateway(t, { config: { Security: { AgentAuth: { TokenRequests: limits } } } })

t.beforeEach(() => {
  origin.seen.length = 0
})

t.test('revocation, quarantine and removal bite on the very next request', async t => {
  for (const [action, status, error] of [
    ['deactivate', 403, 'agent_inactive'],
    ['quarantine', 403, 'agent_quarantined'],
    ['revoke', 403, 'agent_revoked'],
    [undefined, 401, 'unauthenticated'],
  ] as const) {
    const { id, token } = await gateway.agent()
    t.equal((await gateway.proxy(token, `${origin.url}/before`)).status, 200)
    if (action === undefined) await gateway.manage('DELETE', `/agents/${id}`)
    else await gateway.manage('POST', `/agents/${id}/${action}`)
    const answer = await gateway.proxy(token, `${origin.url}/after`)
    t.equal(answer.status, status, error)
    t.equal(code(answer), error)
  }
  t.equal(origin.seen.filter(({ target }) => target === '/after').length, 0)
})

t.test('two tokens, no token and what only looks like one are refused alike', async t => {
  const { token } = await gateway.agent()
  const fields = [
    '',
    'Gateway-Authorization: Bearer\r\n',
    'Gateway-Authorization: Bearer \r\n',
    `Gateway-Authorization: ${token}\r\n`,
    `Gateway-Authorization: Basic ${token}\r\n`,
    `Gateway-Authorization: Bearer ${token}, Bearer ${token}\r\n`,
    `Gateway-Authorization: Bearer ${token}\r\nGateway-Authorization: Bearer ${token}x\r\n`,
    `Gateway-Authorization: Bearer \u00a0${token}\r\n`,
    `Gateway-Authorization: Bearer ${token}\u00a0\r\n`,
    `Gateway-Authorization: Bearer ${'x'.repeat(8_192)}\r\n`,
    `Authorization: Bearer ${token}\r\n`,
  ]
  for (const field of fields) {
    const client = await openRaw(t, gateway.port)
    client.write(`GET /proxy/${origin.url}/ HTTP/1.1\r\nHost: g\r\nConnection: close\r\n${field}\r\n`)
    const answer = await client.closed()
    t.match(answer, /^HTTP\/1\.1 401 /, field.slice(0, 60))
    t.match(answer, /WWW-Authenticate: Bearer/i)
    t.match(answer, /Missing or invalid authentication/)
  }
  t.equal(origin.seen.length, 0)
})

t.test('unknown agent, barred agent and wrong secret get the same answer, byte for byte', async t => {
  const barred = await gateway.agent()
  const inactive = await gateway.agent()
  await gateway.manage('POST', `/agents/${inactive.id}/deactivate`)
  await gateway.manage('POST', `/agents/${barred.id}/revoke`)
  const { id } = await gateway.agent()
  const answers = []
  for (const [agentId, clientSecret] of [
    ['00000000-0000-4000-8000-000000000000', secret],
    [barred.id, secret],
    [inactive.id, secret],
    [id, 'wrong'],
    [id, 'x'.repeat(100)],
    [id, ''],
    [id, `${secret}\0`],
    [`{${id}}`, secret],
    [id, undefined],
    [undefined, undefined],
    ['not an id', secret],
  ]) {
    const { status, headers, text } = await gateway.manage('POST', '/tokens', { agentId, clientSecret }, null)
    t.strictSame({ status, text }, { status: 401, text: 'Missing or invalid authentication' })
    answers.push(`${headers.get('www-authenticate')} ${headers.get('content-type')}`)
  }
  for (const answer of answers) t.equal(answer, answers[0])
})

t.test('on the wire, too, an unknown agent and a wrong secret take the same time, within 10 %', async t => {
  const limits = { BcryptCost: 9, PerAgentPerMinute: 10_000, PerAddressPerMinute: 10_000 }
  const gateway = await startGateway(t, { config: { Security: { AgentAuth: { TokenRequests: limits } } } })
  const { id: known } = await gateway.agent()
  const unknown = '00000000-0000-4000-8000-000000000000'
  const login = (agentId: string) => async () => {
    const { status } = await gateway.manage('POST', '/tokens', { agentId, clientSecret: 'wrong' }, null)
    if (status !== 401) t.fail(`answered ${status}`)
  }
  const ratio = await cpuRatio(login(unknown), login(known))
  t.ok(isAlike(ratio), `ratio ${ratio}`)
})

t.test('the sixth wrong secret within a minute is answered 429 with Retry-After, and other agents get in', async t => {
  const { id } = await gateway.agent()
  const other = await gateway.agent()
  const login = (agentId: string, clientSecret: string) =>
    gateway.manage('POST', '/tokens', { agentId, clientSecret }, null)
  for (let i = 0; i < 5; i++) t.equal((await login(id, `guess ${i}`)).status, 401)
  const refused = await login(id, secret)
  t.match(refused, { status: 429, text: /"too_many_logins"/ })
  t.ok(Number(refused.headers.get('retry-after')) > 50)
  t.equal((await login(other.id, secret)).status, 200)
})

t.test('ten denials in a row quarantine an agent until an admin lifts it', async t => {
  const policyName = await gateway.policy({ name: 'deny-all', default: 'Deny' })
  const { id, token } = await gateway.agent({ policyName })
  for (let i = 0; i < 10; i++) t.equal((await gateway.proxy(token, `${origin.url}/`)).status, 403)
  const stored = async () => JSON.parse((await gateway.manage('GET', `/agents/${id}`)).text)
  while ((await stored()).status === 'Active') t.pass('not stored yet')
  t.equal(code(await gateway.proxy(token, `${origin.url}/`)), 'agent_quarantined')
  await gateway.manage('POST', `/agents/${id}/lift-quarantine`)
  t.match(await stored(), { status: 'Active', trustScore: 0.35 })
  t.equal(code(await gateway.proxy(token, `${origin.url}/`)), 'policy_denied')
  t.equal(origin.seen.length, 0)
})

t.test('a token of the identity provider works on /proxy and at POST /tokens, for the agent bound to it', async t => {
  const { authority, passwordGrant } = await startIdentityProvider(t)
  const Jwt = { Authority: authority, Audience: 'gateway', RequireHttpsMetadata: false }
  const gateway = await startGateway(t, {
    config: { Security: { AgentAuth: { ExternalIdentity: { Provider: 'Jwt', Jwt } } } },
  })
  const { id } = await gateway.agent({ externalSubject: 'user-1' })
  const other = await gateway.agent()
  const { access_token: externalToken } = await passwordGrant('user-1')
  t.equal((await gateway.proxy(externalToken, `${origin.url}/direct`)).status, 200)
  const exchanged = await gateway.manage('POST', '/tokens', { agentId: id, externalToken }, null)
  t.equal(exchanged.status, 200)
  t.equal((await gateway.proxy(JSON.parse(exchanged.text).token, `${origin.url}/exchanged`)).status, 200)
  t.equal((await gateway.manage('POST', '/tokens', { agentId: other.id, externalToken }, null)).status, 401)
  const { access_token: stranger } = await passwordGrant('user-2')
  t.equal((await gateway.proxy(stranger, `${origin.url}/stranger`)).status, 401)
  await gateway.manage('POST', `/agents/${id}/revoke`)
  t.equal(code(await gateway.proxy(externalToken, `${origin.url}/revoked`)), 'agent_revoked')
  t.strictSame(
    origin.seen.map(({ target }) => target),
    ['/direct', '/exchanged'],
  )
  for (const { rawHeaders } of origin.seen) t.notOk(rawHeaders.includes(`Bearer ${externalToken}`), 'kept back')
})

t.test(
  'only the configured authority may be on a network that egress refuses, not what its document names',
  async t => {
    const { authority, passwordGrant } = await startIdentityProvider(t)
    const { access_token: token } = await passwordGrant('user-1')
    const keys = await fetch(`${authority}/jwks`).then(answer => answer.text())
    const elsewhere = await startOrigin(t, (_req, res) => res.end(keys))
    // Names the same keys as the provider itself, in another place.
    const misled = await startOrigin(t, (_req, res) => {
      res.end(JSON.stringify({ issuer: authority, jwks_uri: `${elsewhere.url}/jwks` }))
    })
    const open = (Authority: string, ValidateIssuer: boolean, DenyPrivateNetworks: boolean) => {
      const Jwt = { Authority, Audience: 'gateway', RequireHttpsMetadata: false, ValidateIssuer }
      const Security = { AgentAuth: { ExternalIdentity: { Provider: 'Jwt', Jwt } } }
      return startGateway(t, { config: { Security, Egress: { DenyPrivateNetworks } } })
    }
    const login = async (gateway: Awaited<ReturnType<typeof open>>) => {
      const { id } = await gateway.agent({ externalSubject: 'user-1' })
      return (await gateway.manage('POST', '/tokens', { agentId: id, externalToken: token }, null)).status
    }
    t.equal(await login(await open(authority, true, true)), 200)
    t.equal(await login(await open(misled.url, false, true)), 401)
    t.equal(misled.seen.length, 1)
    t.equal(elsewhere.seen.length, 0)
    t.equal(await login(await open(misled.url, false, false)), 200, 'where egress allows it, it is fetched')
  },
)

t.test('a token of the identity provider is nothing when none is configured', async t => {
  const { passwordGrant } = await startIdentityProvider(t)
  const { id } = await gateway.agent({ externalSubject: 'user-1' })
  const { access_token: externalToken } = await passwordGrant('user-1')
  t.equal((await gateway.proxy(externalToken, `${origin.url}/`)).status, 401)
  t.equal((await gateway.manage('POST', '/tokens', { agentId: id, externalToken }, null)).status, 401)
  t.equal(origin.seen.length, 0)
})
