/** Tokens that upstreams get for the token of the agent itself. Threat T88 of SECURITY.md. */
import { chmodSync, renameSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { join } from 'node:path'
import t from 'tap'
import { openSecure, startForward } from '../fixtures/forward.ts'
import { eventually, type GatewaySetup } from '../fixtures/gateway.ts'
import { startIdentityProvider } from '../fixtures/idp.ts'
import { secureCaFile, secureName, startSecureOrigin } from '../fixtures/origin.ts'
import { testdir } from '../fixtures/testdir.ts'

const provider = await startIdentityProvider(t)
let error: string | undefined
let waitFor: (() => void)[] | undefined
let issued = 0
/** The token servers, and the API: below `/api` it answers with what it was sent. */
const server = await startSecureOrigin(t, (req, res, seen) => {
  if (req.url?.startsWith('/api') === true) res.end(req.headers.authorization)
  else if (req.method === 'GET') json(res, documents[req.url ?? ''])
  else req.on('end', () => (waitFor === undefined ? answer(res, seen) : waitFor.push(() => answer(res, seen))))
})
const documents: Record<string, object> = {
  '/.well-known/openid-configuration/chat': {},
  '/chat/.well-known/openid-configuration': {},
  '/.well-known/oauth-authorization-server/chat': {
    issuer: `${server.url}/chat`,
    token_endpoint: `${server.url}/chat/token`,
  },
}

function json(res: ServerResponse, body: object | undefined, status = body === undefined ? 404 : 200): void {
  res.writeHead(status, { 'content-type': 'application/json' })
  res.end(JSON.stringify(body ?? {}))
}

const formOf = (body: Buffer) => Object.fromEntries(new URLSearchParams(body.toString()))

/** Whose token it was is in the one that is given for it. */
function answer(res: ServerResponse, { body, target }: { readonly body: Buffer; readonly target: string }): void {
  const form = formOf(body)
  const [, payload = ''] = (form['subject_token'] ?? form['assertion'] ?? '').split('.')
  const { sub } = JSON.parse(Buffer.from(payload, 'base64url').toString())
  issued += 1
  if (error !== undefined) json(res, { error }, error === 'server_error' ? 500 : 400)
  else if (target === '/idp/token') {
    const accessToken = `x.${Buffer.from(JSON.stringify({ sub })).toString('base64url')}.x`
    const issuedTokenType = 'urn:ietf:params:oauth:token-type:id-jag'
    json(res, { access_token: accessToken, issued_token_type: issuedTokenType, token_type: 'N_A', expires_in: 300 })
  } else json(res, { access_token: `given-to-${sub}-${issued}`, token_type: 'Bearer', expires_in: 3_600 })
}

const host = `${secureName}:${server.port}`
const client = { ClientId: 'gateway', Secret: 'client' }
const exchange = { Type: 'AgentTokenExchange', ...client, TokenUrl: `${server.url}/token`, Audience: 'api' }
const Jwt = { Authority: provider.authority, Audience: 'gateway', RequireHttpsMetadata: false }
const directory = testdir(t, { client: 'client-secret-1', policies: {} })
const clientFile = join(directory, 'client')
chmodSync(clientFile, 0o600)
const settings: GatewaySetup = {
  directory,
  lookup: async () => ['127.0.0.1'],
  alone: 'each gateway exchanges tokens by itself',
  env: { CHAT: 'chat-secret-1', ACTOR: 'actor.jwt.sig' },
  config: {
    Proxy: { CaFile: secureCaFile },
    Hosts: [{ Host: 'api.gateway.test', Upstream: server.url }],
    Security: { AgentAuth: { ExternalIdentity: { Provider: 'Jwt', Jwt } } },
    Secrets: [
      { Name: 'client', FromFile: 'client' },
      ...['chat', 'actor'].map(Name => ({ Name, FromEnv: Name.toUpperCase() })),
    ],
    Credentials: [
      { Name: 'api', ...exchange, Scope: 'read' },
      { Name: 'acting', ...exchange, ActorToken: 'actor', SubjectTokenType: 'Jwt' },
      {
        ...{ Name: 'chat', Type: 'IdJag', ...client, TokenUrl: `${server.url}/idp/token`, Scope: 'chat.read' },
        ...{ Audience: `${server.url}/chat`, Resource: `${server.url}/api/chat` },
        ...{ ResourceClientId: 'gateway-at-chat', ResourceSecret: 'chat' },
      },
    ],
    Upstreams: ['acting', 'chat', 'api'].map(Credential => ({
      ...{ Host: host, Credential },
      Paths: [Credential === 'api' ? '/api' : `/api/${Credential}`],
    })),
  },
}
const gateway = await startForward(t, settings)
await gateway.policy({ name: 'held', default: 'Hitl' })

async function bound(name: string, more: object = {}) {
  const agent = await gateway.agent({ externalSubject: name, ...more })
  const login = async () => (await provider.passwordGrant(name)).access_token
  return { ...agent, login, external: await login() }
}
const [ada, bob] = [await bound('ada'), await bound('bob')]
const careful = await bound('careful', { policyName: 'held' })
const call = async (token: string, path = '/api', init?: RequestInit) => {
  const answer = await gateway.proxy(token, server.url + path, init)
  const text = await answer.text()
  return { status: answer.status, code: answer.headers.get('gateway-error'), text }
}
const asked = (path = '/token') => server.seen.filter(({ target }) => target === path)
const reached = () => server.seen.filter(({ target }) => target.startsWith('/api'))

t.beforeEach(() => {
  server.seen.length = 0
  error = undefined
})

t.test('each agent gets a token for its own, and the upstream sees no token of an agent', async t => {
  const [adas, bobs] = [await call(ada.external), await call(bob.external)]
  t.match(adas, { status: 200, text: /^Bearer given-to-ada-\d+$/ })
  t.match(bobs.text, /^Bearer given-to-bob-\d+$/)
  t.strictSame(await call(ada.external), adas, 'the token is known')
  t.strictSame(await call(bob.external), bobs)
  t.equal(asked().length, 2)
  t.match(formOf(asked()[0]!.body), {
    ...{ grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange', audience: 'api', scope: 'read' },
    ...{ subject_token: ada.external, subject_token_type: 'urn:ietf:params:oauth:token-type:access_token' },
    requested_token_type: 'urn:ietf:params:oauth:token-type:access_token',
  })
  t.equal(asked()[0]?.headers.authorization, `Basic ${btoa('gateway:client%2Dsecret%2D1')}`)
  const again = await ada.login()
  t.match((await call(again)).text, /^Bearer given-to-ada-\d+$/)
  t.equal(asked().length, again === ada.external ? 2 : 3, 'another token of the same agent is exchanged by itself')
  for (const { rawHeaders } of reached())
    t.notOk(rawHeaders.includes(ada.external) || rawHeaders.includes(bob.external))
})

t.test('it is the same on a virtual host', async t => {
  const { default: http } = await import('node:http')
  const headers = { host: 'api.gateway.test', 'gateway-authorization': `Bearer ${bob.external}` }
  const text = await new Promise(resolve => {
    http.get({ port: gateway.port, path: '/api/v', headers }, async res => {
      resolve((await res.toArray()).join(''))
    })
  })
  t.match(text, /^Bearer given-to-bob-\d+$/)
})

t.test(
  'it is the same in a tunnel of the forward proxy, whose requests are those of the token of its CONNECT',
  async t => {
    const inTunnel = async (token: string) => {
      const client = await openSecure(t, gateway, { to: host, authorization: `Bearer ${token}` })
      client.write(`GET /api/tunnel HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`)
      return client.until(/\r\n\r\n.*(?:given-to-\w+-\d|own_token_needed)/s)
    }
    t.match(await inTunnel(bob.external), /\r\n\r\n.*Bearer given-to-bob-\d+/s)
    t.match(await inTunnel(bob.token), /^HTTP\/1.1 403 .*own_token_needed/s)
    t.equal(reached().length, 1)
  },
)

t.test('the token of the gateway itself acts for the agent, if it is configured', async t => {
  await call(ada.external, '/api/acting')
  t.match(formOf(asked()[0]!.body), {
    ...{ actor_token: 'actor.jwt.sig', actor_token_type: 'urn:ietf:params:oauth:token-type:jwt' },
    subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
  })
})

t.test('an identity assertion of the provider is a grant at the server of the resource', async t => {
  t.match((await call(ada.external, '/api/chat')).text, /^Bearer given-to-ada-\d+$/)
  t.match(formOf(asked('/idp/token')[0]!.body), {
    ...{ requested_token_type: 'urn:ietf:params:oauth:token-type:id-jag', audience: `${server.url}/chat` },
    ...{ resource: `${server.url}/api/chat`, subject_token: ada.external },
  })
  const [grant] = asked('/chat/token')
  t.match(formOf(grant!.body), { grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer', scope: 'chat.read' })
  t.equal(grant?.headers.authorization, `Basic ${btoa('gateway%2Dat%2Dchat:chat%2Dsecret%2D1')}`)
  t.notMatch(grant?.body.toString(), ada.external, 'the token of the agent is for the provider alone')
})

t.test('a token of the gateway cannot be exchanged', async t => {
  t.match(await call(ada.token), { status: 403, code: 'own_token_needed', text: /"credential":"api"/ })
  t.equal(server.seen.length, 0)
})

t.test('a token that its server refuses, and a server that fails, are told apart, and nothing is sent', async t => {
  const eve = await bound('eve')
  error = 'invalid_request'
  const refused = await call(eve.external)
  t.match(refused, { status: 403, code: 'own_token_needed', text: /does not exchange the token/ })
  t.match(await gateway.manage('GET', '/credentials/api').then(({ text }) => JSON.parse(text)), { state: 'ready' })
  const mallory = await bound('mallory')
  error = 'server_error'
  t.match(await call(mallory.external), { status: 503, code: 'credential_unavailable' })
  t.strictSame(reached(), [])
  const view = JSON.parse((await gateway.manage('GET', '/credentials/api')).text)
  t.match(view, { state: 'failing', usable: false, problem: /token server cannot be used/ })
  const { items } = JSON.parse((await gateway.manage('GET', '/audit?action=credential.failed')).text)
  t.equal(items.length, 1, 'what one agent can provoke is not in the audit trail')
  error = undefined
  t.match((await call(await mallory.login().then(() => bob.external), '/api/bob')).status, 200)
  const carl = await bound('carl')
  t.equal((await call(carl.external)).status, 200)
  const healed = JSON.parse((await gateway.manage('GET', '/credentials/api')).text)
  t.match(healed, { state: 'ready', usable: true, expiresAt: null, problem: null })
  t.match(await gateway.manage('POST', '/credentials/api/renew'), { status: 409 })
  // An agent with many tokens can have it fail and succeed in turns.
  for (const name of ['dave', 'erin']) {
    error = 'server_error'
    t.equal((await call((await bound(name)).external)).status, 503)
    error = undefined
    t.equal((await call((await bound(`${name}-2`)).external)).status, 200)
  }
  const later = JSON.parse((await gateway.manage('GET', '/audit?action=credential.failed')).text)
  t.equal(later.items.length, 1, 'failures are in the audit trail once in a while')
})

t.test('while the secret of the client cannot be read, what was exchanged is sent, and nothing without', async t => {
  const before = await call(ada.external)
  const gina = await bound('gina')
  renameSync(clientFile, `${clientFile}.away`)
  const seen = reached().length
  t.match(await call(gina.external), { status: 503, code: 'credential_unavailable' })
  t.equal(reached().length, seen)
  t.strictSame(await call(ada.external), before)
  const view = JSON.parse((await gateway.manage('GET', '/credentials/api')).text)
  t.match(view, { state: 'failing', problem: /./ })
  renameSync(`${clientFile}.away`, clientFile)
  const hans = await bound('hans')
  t.match((await call(hans.external)).text, /given-to-hans/)
})

t.test('requests that come at once wait for one exchange, and for that of their own agent alone', async t => {
  const [dora, egon] = [await bound('dora'), await bound('egon')]
  waitFor = []
  const calls = Array.from({ length: 20 }, (_, i) => call(i % 2 === 0 ? dora.external : egon.external))
  await eventually(
    () => waitFor?.length,
    count => count === 2,
  )
  const waiting = waitFor
  waitFor = undefined
  for (const one of waiting) one()
  const answers = await Promise.all(calls)
  for (const [i, { text }] of answers.entries()) t.match(text, i % 2 === 0 ? /given-to-dora/ : /given-to-egon/)
  t.equal(asked().length, 2)
})

t.test('when the rights of an agent end, its tokens end with them', async t => {
  const frank = await bound('frank')
  const before = await call(frank.external)
  t.equal((await gateway.manage('POST', `/agents/${frank.id}/deactivate`)).status, 200)
  t.equal((await call(frank.external)).code, 'agent_inactive')
  t.equal((await gateway.manage('POST', `/agents/${frank.id}/activate`)).status, 200)
  t.not((await call(frank.external)).text, before.text)
  t.equal(asked().length, 2)
})

t.test('a held request is sent with the token of its agent, which was exchanged before a person was asked', async t => {
  const held = await gateway.proxy(careful.external, `${server.url}/api/held`, { method: 'POST', body: 'x' })
  t.equal(held.status, 202)
  t.equal(asked().length, 1)
  const id = held.headers.get('location')!.replace('/hitl/status/', '')
  const { pending } = JSON.parse((await gateway.manage('GET', `/hitl/${id}`)).text)
  t.strictSame(pending.addedFields, ['Authorization (api)'], 'reviewers see what is added')
  t.equal((await gateway.manage('POST', `/hitl/${id}/approve`)).status, 200)
  t.match(reached()[0]?.headers.authorization, /^Bearer given-to-careful-\d+$/)
  error = 'invalid_grant'
  const other = await bound('other', { policyName: 'held' })
  t.match(await call(other.external, '/api/held', { method: 'POST' }), { status: 403, code: 'own_token_needed' })
})

t.test('a held request whose agent has lost its rights meanwhile is not sent', async t => {
  const held = await gateway.proxy(careful.external, `${server.url}/api/held`, { method: 'POST', body: 'x' })
  const id = held.headers.get('location')!.replace('/hitl/status/', '')
  for (const change of ['deactivate', 'activate'])
    t.equal((await gateway.manage('POST', `/agents/${careful.id}/${change}`)).status, 200)
  const seen = reached().length
  const approved = await gateway.manage('POST', `/hitl/${id}/approve`)
  t.match(approved.text, /own_token_needed/)
  t.match(approved.text, /has ended, or this gateway does not have it/)
  t.equal(reached().length, seen)
})

t.test('no token and no secret is in the log, the audit trail or the API', async t => {
  const texts = [JSON.stringify(gateway.log)]
  for (const path of ['/credentials', '/audit', '/hitl']) texts.push((await gateway.manage('GET', path)).text)
  for (const value of ['given-to-', ada.external, careful.external, 'client-secret', 'chat-secret', 'actor.jwt.sig'])
    for (const text of texts) t.notOk(text.includes(value), value)
  t.ok(gateway.log.some(({ credential }) => credential === 'api'))
})

t.test('after a restart tokens are exchanged anew', async t => {
  const before = await call(ada.external)
  await gateway.close()
  server.seen.length = 0
  const again = await startForward(t, settings)
  const after = await (await again.proxy(ada.external, `${server.url}/api`)).text()
  t.match(after, /^Bearer given-to-ada-\d+$/)
  t.not(after, before.text)
  t.equal(asked().length, 1)
})
