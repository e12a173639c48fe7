/** Accounts of people: who connects which, and whose token a request gets. Threats T91 and T92. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import t from 'tap'
import { startAccountProvider } from '../fixtures/account-provider.ts'
import { absolute, openSecure, startForward } from '../fixtures/forward.ts'
import { eventually, type GatewaySetup } from '../fixtures/gateway.ts'
import { secureCaFile, secureName } from '../fixtures/origin.ts'
import { openRaw } from '../fixtures/raw.ts'
import { testdir } from '../fixtures/testdir.ts'

const provider = await startAccountProvider(t)
const consoleUrl = 'https://gateway.example'
const ofServer = { Type: 'Connect', Issuer: provider.url, ClientId: 'gateway', ClientAuth: 'None' }
const host = `${secureName}:${provider.port}`
const directory = testdir(t, { policies: {} })
const settings = {
  directory,
  lookup: async () => ['127.0.0.1'],
  alone: 'its accounts are connected',
  env: { KEY: 'fixed-value' },
  config: {
    System: { PublicUrl: consoleUrl },
    Proxy: { CaFile: secureCaFile },
    Hosts: [{ Host: 'api.gateway.test', Upstream: provider.url }],
    Secrets: [{ Name: 'key', FromEnv: 'KEY' }],
    Credentials: [
      {
        ...ofServer,
        Name: 'calendar',
        Scope: 'read offline_access',
        StepUpScope: 'write share',
        Parameters: ['access_type=offline', 'p=a=b'],
      },
      { ...ofServer, Name: 'team', Per: 'Owner' },
      { ...ofServer, Name: 'all', Per: 'All' },
      { Name: 'own', Type: 'Connect', Issuer: provider.url },
      { Name: 'inside', Type: 'Connect', Issuer: 'https://127.0.0.1:1', ClientId: 'gateway', ClientAuth: 'None' },
      { ...ofServer, Name: 'mcp', McpServer: `${provider.url}/mcp` },
      { Name: 'fixed', Secret: 'key' },
    ],
    Upstreams: [
      { Host: host, Credential: 'calendar', Paths: ['/calendar'] },
      { Host: host, Credential: 'team', Paths: ['/team'] },
      { Host: host, Credential: 'all', Paths: ['/all'] },
      { Host: host, Credential: 'mcp', Paths: ['/mcp'] },
    ],
    Policies: [
      { name: 'allow-all', default: 'Allow' },
      { name: 'reviewed', default: 'Hitl' },
    ],
  },
} satisfies GatewaySetup
const gateway = await startForward(t, settings)
const { manage } = gateway

const anna = await gateway.agent({ ownerId: 'anna' })
const bob = await gateway.agent({ ownerId: 'bob' })
const second = await gateway.agent({ ownerId: 'anna' })
const stored = await gateway.agent({ ownerId: 'anna' })
const people = {
  anna: await gateway.agent({ ownerId: 'anna', roles: ['reviewer'] }),
  bob: await gateway.agent({ ownerId: 'bob', roles: ['auditor'] }),
}

type Token = string | undefined
const call = (token: string, path = '/calendar') => gateway.proxy(token, provider.url + path)
const sentTo = async (token: string, path?: string) => {
  const answer = await call(token, path)
  return answer.status === 200 ? answer.text() : `${answer.status} ${((await answer.json()) as { code: string }).code}`
}
const send = async (method: string, path: string, body: unknown, token?: Token) => {
  const { status, text } = await manage(method, path, body, token)
  return { status, ...JSON.parse(text) }
}
const begin = (of: object, token?: Token, name = 'calendar') => send('POST', `/credentials/${name}/connect`, of, token)
const finish = (given: object, token?: Token, name = 'calendar') =>
  send('POST', `/credentials/${name}/connected`, given, token)

/** A person connects an account. */
async function connect(of: object, login: string, { token, name }: { token?: Token; name?: string } = {}) {
  const { url, session } = await begin(of, token, name)
  return finish({ session, ...provider.consent(url, login) }, token, name)
}
const disconnect = (query: string, token?: Token, name = 'calendar') =>
  send('DELETE', `/credentials/${name}/token${query}`, undefined, token)
/** Its server was told. */
const revoked = (login: string) =>
  eventually(
    () => provider.revoked,
    tokens => tokens.some(token => token?.startsWith(`refresh-canary-${login}-`)),
  )
const calendar = async (agentId: string, token?: Token) =>
  JSON.parse((await manage('GET', `/credentials?agentId=${agentId}`, undefined, token)).text).find(
    ({ name }: { name: string }) => name === 'calendar',
  )

t.test('without an account nothing is sent, and the refusal says where a person connects it', async t => {
  const answer = await call(anna.token)
  t.equal(answer.status, 403)
  const { code, credential, connect, detail } = (await answer.json()) as Record<string, string>
  t.strictSame({ code, credential }, { code: 'credential_needed', credential: 'calendar' })
  t.equal(connect, `${consoleUrl}/console/#/connect/calendar?agentId=${anna.id}`)
  t.ok(detail?.includes(String(connect)))
  t.match(await calendar(anna.id), { type: 'Connect', per: 'Agent', state: 'needed', account: null })
  const failed = async () => JSON.parse((await manage('GET', '/audit?subject=calendar')).text).items
  const [entry] = await eventually(failed, ({ length }) => length > 0)
  t.match(entry, { action: 'credential.failed', details: { agentId: anna.id, state: 'needed' } })
  t.strictSame(provider.sent, [])
})

t.test('the page of consent is asked for what the settings name, with PKCE, and comes back to one address', async t => {
  const offer = await begin({ agentId: anna.id })
  t.match(offer, { status: 201, agentId: anna.id, ownerId: null, hosts: [host], scope: 'read offline_access' })
  const asked = Object.fromEntries(new URL(offer.url).searchParams)
  t.match(asked, {
    ...{ response_type: 'code', scope: 'read offline_access', code_challenge_method: 'S256' },
    ...{ redirect_uri: `${consoleUrl}/console/connected/calendar`, access_type: 'offline', p: 'a=b' },
  })
  t.notOk(offer.url.includes(offer.session), 'the secret of the tab is in no address')
  const { status, headers } = await manage(
    'GET',
    '/console/connected/calendar?code=a%26b&state=s&other=x',
    undefined,
    null,
  )
  t.equal(status, 303)
  t.equal(headers.get('location'), '../#/connected/calendar?state=s&code=a%26b')
  t.equal(headers.get('referrer-policy'), 'no-referrer')
})

t.test('the server of a credential without a client may read who the gateway is, and of no other one', async t => {
  const document = async (name: string) => manage('GET', `/oauth-clients/${name}`, undefined, null)
  const { status, text, headers } = await document('own')
  t.equal(status, 200)
  t.equal(headers.get('cache-control'), 'public, max-age=3600')
  const redirects = [`${consoleUrl}/console/connected/own`]
  t.match(JSON.parse(text), { client_id: `${consoleUrl}/oauth-clients/own`, redirect_uris: redirects })
  for (const name of ['calendar', 'fixed', 'none']) t.equal((await document(name)).status, 404, name)
  t.match(await begin({ agentId: anna.id }, undefined, 'own'), { status: 409, detail: /registers no clients/ })
  const put = await send('PUT', '/credentials/own/token', { agentId: anna.id, refreshToken: 'r' })
  t.match(put, { status: 409, detail: /has no ClientId/ })
  const inside = await begin({ agentId: anna.id }, undefined, 'inside')
  t.match(inside, { status: 409, detail: /^127\.0\.0\.1: / })
})

t.test('requests of an agent get its own account, and no other agent gets it', async t => {
  t.match(await connect({ agentId: anna.id }, 'ann', { token: people.anna.token }), {
    ...{ status: 200, agentId: anna.id, state: 'ready', login: 'ann@example.com', connectedBy: people.anna.id },
    ...{ missing: [], problem: null },
  })
  t.match(await sentTo(anna.token), /^Bearer access-canary-ann-\d+$/)
  for (const other of [bob, second]) t.equal(await sentTo(other.token), '403 credential_needed')
  await connect({ agentId: bob.id }, 'bob')
  t.match(await sentTo(bob.token), /canary-bob/)
  t.match(await sentTo(anna.token), /canary-ann/)
  t.match(await calendar(anna.id), { usable: true, account: { login: 'ann@example.com', state: 'ready' } })
  const accounts = JSON.parse((await manage('GET', '/credentials/calendar/accounts')).text)
  t.strictSame(accounts.map(({ agentId }: { agentId: string }) => agentId).sort(), [anna.id, bob.id].sort())
})

t.test('each agent gets its own on every road: virtual hosts, requests in absolute form and tunnels', async t => {
  for (const { id } of [anna, bob]) {
    const { url } = await begin({ agentId: id }, undefined, 'mcp')
    t.equal(new URL(url).searchParams.get('resource'), `${provider.url}/mcp`)
    t.match(await connect({ agentId: id }, `mcp-${id}`, { name: 'mcp' }), { status: 200 })
  }
  const onVirtualHost = async (token: string, path: string) => {
    const client = await openRaw(t, gateway.port)
    const fields = `Host: api.gateway.test\r\nGateway-Authorization: Bearer ${token}\r\nConnection: close\r\n`
    client.write(`GET ${path} HTTP/1.1\r\n${fields}\r\n`)
    return client.closed()
  }
  const inAbsoluteForm = (token: string, path: string) =>
    gateway.exchange(t, absolute(provider, { path, host, authorization: `Bearer ${token}` }))
  const inTunnel = async (token: string, path: string) => {
    const client = await openSecure(t, gateway, { to: host, authorization: `Bearer ${token}` })
    client.write(`GET ${path} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`)
    return client.until(/\r\n\r\n.*(?:access-canary-[\w-]+-\d|credential_needed)/s)
  }
  for (const send of [onVirtualHost, inAbsoluteForm, inTunnel]) {
    for (const [{ id, token }, login] of [
      [anna, 'ann'],
      [bob, 'bob'],
    ] as const) {
      t.match(await send(token, '/calendar'), new RegExp(`^HTTP/1.1 200 .*Bearer access-canary-${login}-\\d`, 's'))
      t.match(await send(token, '/mcp'), new RegExp(`^HTTP/1.1 200 .*Bearer access-canary-mcp-${id}-\\d`, 's'))
    }
    const before = provider.sent.length
    for (const path of ['/calendar', '/mcp'])
      t.match(await send(second.token, path), /^HTTP\/1.1 403 .*credential_needed/s, 'without an account')
    t.equal(provider.sent.length, before, 'nothing is sent')
  }
})

t.test('an owner connects accounts of the own agents alone, an admin all, and no agent any', async t => {
  t.match(await begin({ agentId: second.id }, people.anna.token), { status: 201 })
  t.match(await begin({ agentId: second.id }, people.bob.token), { status: 403, code: 'forbidden' })
  for (const { token } of [anna, second]) t.match(await begin({ agentId: second.id }, token), { status: 403 })
  t.match(await begin({ ownerId: 'anna' }, people.anna.token, 'team'), { status: 201, ownerId: 'anna' })
  t.match(await begin({ ownerId: 'anna' }, people.bob.token, 'team'), { status: 403 })
  t.match(await begin({}, people.anna.token, 'all'), { status: 403 })
  t.match(await begin({}, undefined, 'all'), { status: 201, agentId: null, ownerId: null })
  t.match(await disconnect(`?agentId=${anna.id}`, people.bob.token), { status: 403 })
  t.match(await send('DELETE', '/credentials/fixed/token', undefined, people.bob.token), { status: 403 })
  const stored = { refreshToken: 'r', agentId: anna.id }
  t.match(await send('PUT', '/credentials/calendar/token', stored, people.anna.token), { status: 403 })
  for (const [of, name] of [
    [{}],
    [{ ownerId: 'anna' }],
    [{}, 'team'],
    [{ ownerId: 'x' }, 'all'],
    [{}, 'fixed'],
  ] as const)
    t.match(await begin(of, undefined, name), { status: 409, code: 'wrong_state' })
  t.match(await begin({ agentId: '00000000-0000-4000-8000-000000000000' }), { status: 409 })
  t.match(await begin({}, undefined, 'none'), { status: 404 })
})

t.test('an owner who is no auditor sees the accounts of the own agents that they may connect, and no more', async t => {
  const list = async (query: string, { token }: { token: string } = people.anna) => {
    const { status, text } = await manage('GET', `/credentials${query}`, undefined, token)
    return status === 200 ? JSON.parse(text).map(({ name }: { name: string }) => name) : status
  }
  t.strictSame(await list(`?agentId=${anna.id}`), ['calendar', 'team', 'mcp'])
  t.match(await calendar(anna.id, people.anna.token), { account: { login: 'ann@example.com' } })
  t.strictSame(await list(''), [])
  for (const query of [`?agentId=${bob.id}`, '?agentId=none']) t.equal(await list(query), 403, query)
  t.strictSame(await list(`?agentId=${anna.id}`, people.bob), ['calendar', 'team', 'all', 'mcp'], 'an auditor')
  t.equal(await list(`?agentId=${anna.id}`, anna), 403, 'an agent')
})

t.test('a consent ends once, by the person and in the tab that began it, for its credential', async t => {
  const attempts = async (change: (given: Record<string, string>) => object, token?: Token, name?: string) => {
    const { url, session } = await begin({ agentId: second.id }, people.anna.token)
    const given = { session, ...provider.consent(url, 'evil') }
    const asked = provider.asked.length
    t.match(await finish(change(given), token ?? people.anna.token, name), { status: 409, code: 'wrong_state' })
    t.equal(provider.asked.length, asked, 'the code is not exchanged')
    t.match(await finish(given, people.anna.token), { status: 409 }, 'and is used up')
  }
  await attempts(given => given, people.bob.token)
  await attempts(given => given, gateway.adminToken)
  await attempts(given => ({ ...given, session: 'of another tab' }))
  await attempts(given => given, undefined, 'team')
  await attempts(given => ({ ...given, iss: 'https://evil.example' }))
  await attempts(({ iss: _, ...given }) => given)
  await attempts(({ code: _, ...given }) => ({ ...given, error: 'access_denied' }))
  t.match(await finish({ session: 's', state: 'never begun', code: 'c' }), { status: 409 })
  t.equal(await sentTo(second.token), '403 credential_needed')
  const { url, session } = await begin({ agentId: second.id })
  const other = await begin({ agentId: second.id })
  const mixed = {
    session: other.session,
    ...provider.consent(url, 'evil'),
    state: new URL(other.url).searchParams.get('state'),
  }
  t.match(await finish(mixed), { status: 409, detail: /invalid_grant/ }, 'the code of another consent')
  const given = { session, ...provider.consent(url, 'once') }
  t.match(
    await Promise.all([finish(given), finish(given)]).then(all => all.map(({ status }) => status).sort()),
    [200, 409],
  )
  await disconnect(`?agentId=${second.id}`)
})

t.test(
  'a person without a way back enters a code at the server, for the account that was named at the begin',
  async t => {
    provider.interval = 1
    const { url, session, device } = await begin({ ownerId: 'bob', device: true }, undefined, 'team')
    t.match({ url, device }, { url: `${provider.url}/enter`, device: { code: 'WDJB-MJHT', everySeconds: 1 } })
    const ask = (token?: Token) => finish({ session, state: device.state }, token, 'team')
    t.match(await ask(), { status: 202, everySeconds: 1 })
    provider.device = 'device-bob'
    const connected = await eventually(ask, ({ status }) => status !== 202)
    t.match(connected, { status: 200, ownerId: 'bob', state: 'ready' })
    t.match(await sentTo(bob.token, '/team'), /canary-device-bob/)
    t.match(await ask(), { status: 409 })
    t.match(await begin({ device: true }, people.bob.token, 'all'), { status: 403 })
    const other = await begin({ ownerId: 'anna', device: true }, people.anna.token, 'team')
    const stolen = { session: other.session, state: other.device.state }
    t.match(await finish(stolen, people.bob.token, 'team'), { status: 409 }, 'another person')
    t.match(await disconnect('?ownerId=bob', undefined, 'team'), { status: 200, revoked: true })
  },
)

t.test('fewer scopes are named, more are refused, and a token that cannot be renewed is sent to its end', async t => {
  provider.answer = { scope: '', refresh_token: undefined }
  t.match(await connect({ agentId: second.id }, 'few'), { status: 200, missing: ['read', 'offline_access'], scope: '' })
  t.match(await sentTo(second.token), /canary-few/)
  provider.answer = { scope: 'read write' }
  t.match(await connect({ agentId: second.id }, 'many'), { status: 409, detail: /more scopes/ })
  t.match(await sentTo(second.token), /canary-few/)
  await disconnect(`?agentId=${second.id}`)
  t.match(await connect({ agentId: second.id }, 'much'), { status: 409, detail: /more scopes/ })
  await revoked('much')
  t.notMatch(provider.revoked.join(), /many/, 'the grant that was there might have ended with it')
  provider.answer = {}
})

t.test('a grant whose person has lost the right to it is refused at its end, and revoked at its server', async t => {
  const person = await gateway.agent({ ownerId: 'anna', roles: ['reviewer'] })
  const { url, session } = await begin({ agentId: second.id }, person.token)
  provider.onToken = async () => {
    provider.onToken = undefined
    await manage('POST', `/agents/${person.id}/deactivate`)
  }
  const refused = await finish({ session, ...provider.consent(url, 'lost') }, person.token)
  t.match(refused, { status: 403, code: 'agent_inactive' })
  await revoked('lost')
  t.equal(await sentTo(second.token), '403 credential_needed')
})

t.test('a token that is said to last longer than there are dates hides no other account', async t => {
  const agent = await gateway.agent({ ownerId: 'anna' })
  provider.answer = { expires_in: 1e300 }
  t.match(await connect({ agentId: agent.id }, 'long'), { status: 200, login: 'long@example.com' })
  provider.answer = {}
  t.match(await sentTo(agent.token), /canary-long/)
  for (const path of ['/credentials', '/credentials/calendar/accounts'])
    t.equal((await manage('GET', path)).status, 200, path)
  await disconnect(`?agentId=${agent.id}`)
})

t.test('scopes that an upstream wants are asked for by people, as far as the settings name them', async t => {
  const agent = await gateway.agent({ ownerId: 'anna' })
  await connect({ agentId: agent.id }, 'step-1', { token: people.anna.token })
  const asked = provider.asked.length
  const wants = (scope: string) => call(agent.token, `/calendar?wants=${encodeURIComponent(scope)}`)
  const refused = await wants('read write admin')
  t.equal(refused.status, 403)
  const page = `${consoleUrl}/console/#/connect/calendar?agentId=${agent.id}&scope=write`
  t.match(await refused.json(), {
    ...{ code: 'credential_scope_needed', credential: 'calendar', scope: 'write', connect: page },
    detail: /^idp\.test wants the scope write .* account calendar again/,
  })
  t.equal(refused.headers.get('gateway-error'), 'credential_scope_needed')
  const foreign = await wants('admin')
  t.equal(foreign.headers.get('gateway-error'), null, 'nobody could grant it')
  t.match(foreign.headers.get('gateway-upstream-www-authenticate'), /scope="admin"/)
  t.match(await foreign.text(), /canary-step-1/)
  const account = async () => (await calendar(agent.id, people.anna.token)).account
  t.match(await eventually(account, ({ wantedScope }) => wantedScope !== null), {
    wantedScope: 'write admin',
    grantableScope: 'write',
    state: 'ready',
  })
  t.match(await sentTo(agent.token), /canary-step-1/, 'other requests go on')
  t.equal(provider.asked.length, asked, 'nothing was asked for')
  const trail = JSON.parse((await manage('GET', '/audit?action=credential.scopeWanted')).text).items
  t.equal(trail.length, 1)
  t.match(trail[0], { subject: 'calendar', details: { agentId: agent.id, scope: 'write admin', host: secureName } })
  const begun = (scope: string, token?: Token) => begin({ agentId: agent.id, scope }, token)
  t.match(await begun('write admin'), { status: 409, detail: /StepUpScope of calendar .*"admin"/ })
  t.match(await begun('write', people.bob.token), { status: 403 })
  const offer = await begun('write', people.anna.token)
  t.match(offer, { status: 201, scope: 'read offline_access write', moreScope: 'write' })
  t.equal(new URL(offer.url).searchParams.get('scope'), offer.scope)
  const given = { session: offer.session, ...provider.consent(offer.url, 'step-2') }
  t.match(await finish(given, people.anna.token), { status: 200, wantedScope: 'admin', grantableScope: null })
  const passed = await wants('write')
  t.match(
    [passed.status, passed.headers.get('gateway-error')],
    [403, null],
    'it has the scope: connecting again is of no use',
  )
  t.match(
    await begin({ agentId: agent.id }),
    { scope: 'read offline_access write', moreScope: null },
    'what was granted stays',
  )
  const renewed = provider.asked.length
  await call(agent.token, '/calendar?refuse')
  t.match(provider.asked[renewed], { grant_type: 'refresh_token', scope: 'read offline_access write' })
  await disconnect(`?agentId=${agent.id}`)
  t.match(await begin({ agentId: agent.id }), { scope: 'read offline_access', moreScope: null })
})

t.test('an account of an owner is that of its agents, and an account of all is that of everybody', async t => {
  t.match(await connect({ agentId: anna.id }, 'team-anna', { name: 'team' }), { status: 200, ownerId: 'anna' })
  for (const { token } of [anna, second]) t.match(await sentTo(token, '/team'), /canary-team-anna/)
  t.equal(await sentTo(bob.token, '/team'), '403 credential_needed')
  t.match(await connect({}, 'everybody', { name: 'all' }), { status: 200, agentId: null, ownerId: null })
  for (const { token } of [anna, bob]) t.match(await sentTo(token, '/all'), /canary-everybody/)
  t.match(await disconnect('?ownerId=anna', people.anna.token, 'team'), { status: 200, revoked: true })
  t.equal(await sentTo(anna.token, '/team'), '403 credential_needed')
})

t.test('a request that waits for a person stays pending without an account, and is sent with one', async t => {
  const agent = await gateway.agent({ ownerId: 'anna', policyName: 'reviewed' })
  const held = await call(agent.token)
  t.equal(held.status, 202)
  const hitlId = held.headers.get('location')!.replace('/hitl/status/', '')
  const approve = () => manage('POST', `/hitl/${hitlId}/approve`)
  const refused = await approve()
  t.equal(refused.status, 403)
  t.match(JSON.parse(refused.text), { code: 'credential_needed', connect: /#\/connect\/calendar/ })
  t.match(JSON.parse((await manage('GET', `/hitl/${hitlId}`)).text), { pending: { status: 'Pending' } })
  await connect({ agentId: agent.id }, 'late')
  t.equal((await approve()).status, 200)
  const last = await eventually(
    () => provider.sent.at(-1),
    sent => String(sent).includes('late'),
  )
  t.match(last, /canary-late/)
  const wanting = await call(agent.token, '/calendar?wants=share')
  const wantingId = wanting.headers.get('location')!.replace('/hitl/status/', '')
  const answer = await manage('POST', `/hitl/${wantingId}/approve`)
  t.match(answer, { status: 403, text: /canary-late/ }, 'the reviewer gets the answer of the upstream')
  const wanted = async () => (await calendar(agent.id)).account.wantedScope
  t.equal(
    await eventually(wanted, scope => scope !== null),
    'share',
    'the owner learns what an approved request lacked',
  )
})

t.test('while the server of accounts is slow or down at the end of a token, nothing is sent without one', async t => {
  const ending = async (login: string) => {
    provider.lifeSeconds = 0
    const agent = await gateway.agent()
    t.match(await connect({ agentId: agent.id }, login), { status: 200 })
    provider.lifeSeconds = 3_600
    return agent
  }
  const [slow, slower, down] = [await ending('slow'), await ending('slower'), await ending('down')]
  const { promise, resolve } = Promise.withResolvers<void>()
  provider.onToken = () => promise
  const [sent, asked] = [provider.sent.length, provider.asked.length]
  const waiting = [slow, slow, slower].map(({ token }) => sentTo(token))
  await eventually(
    () => provider.asked.length,
    count => count >= asked + 2,
  )
  t.match(await sentTo(bob.token), /canary-bob/, 'others do not wait')
  t.equal(provider.sent.length, sent + 1)
  resolve()
  t.match(await Promise.all(waiting), [/canary-slow-/, /canary-slow-/, /canary-slower-/])
  t.equal(provider.asked.length, asked + 2, 'one renewal of each account')
  provider.onToken = async () => 'down'
  t.equal(await sentTo(down.token), '503 credential_unavailable')
  t.notOk(provider.sent.some(value => value?.includes('canary-down')))
  t.match((await calendar(down.id)).account, { state: 'failing', login: 'down@example.com' })
  t.match(await sentTo(bob.token), /canary-bob/)
  provider.onToken = undefined
  await connect({ agentId: down.id }, 'up')
  t.match(await sentTo(down.token), /canary-up/, 'a new account does not wait for the next attempt')
})

t.test('a disconnected account is forgotten here and revoked there', async t => {
  const before = provider.revoked.length
  t.match(await disconnect(`?agentId=${anna.id}`, people.anna.token), { status: 200, revoked: true })
  t.match(provider.revoked.slice(before), [/^refresh-canary-ann-/])
  t.equal(await sentTo(anna.token), '403 credential_needed')
  t.match(await sentTo(bob.token), /canary-bob/)
  t.match((await calendar(anna.id)).account, { state: 'needed', login: null })
})

t.test('an agent that is removed takes its account along, and its server revokes it', async t => {
  const gone = await gateway.agent({ ownerId: 'anna' })
  await connect({ agentId: gone.id }, 'gone')
  t.match(await sentTo(gone.token), /canary-gone/)
  const { url, session } = await begin({ agentId: gone.id })
  t.equal((await manage('DELETE', `/agents/${gone.id}`)).status, 200)
  await eventually(
    () => provider.revoked.at(-1),
    token => String(token).includes('gone'),
  )
  t.match(await finish({ session, ...provider.consent(url, 'stale') }), { status: 403 }, 'it is not there any more')
  await revoked('stale')
})

t.test('an account whose agent is removed at the moment is refused with the cause', async t => {
  const { id } = await gateway.agent({ ownerId: 'anna' })
  const { url, session } = await begin({ agentId: id })
  // What the store has is ahead of what the gateway knows, as during a removal.
  const db = new DatabaseSync(join(directory, 'data', 'gateway.db'))
  db.prepare('delete from agents where id = ?').run(id)
  db.close()
  t.match(await disconnect(`?agentId=${id}`), { status: 409, detail: /agent is gone/ })
  t.match(await finish({ session, ...provider.consent(url, 'late') }), { status: 409, detail: /agent is gone/ })
  await revoked('late')
  const put = await send('PUT', '/credentials/calendar/token', { agentId: id, refreshToken: 'r' })
  t.match(put, { status: 409, detail: /agent is gone/ })
})

t.test('a grant that the store does not take is revoked at its server', async t => {
  const { id } = await gateway.agent({ ownerId: 'anna' })
  const { url, session } = await begin({ agentId: id })
  const db = new DatabaseSync(join(directory, 'data', 'gateway.db'), { timeout: 10_000 })
  db.exec(`create trigger full before insert on credentials begin select raise(abort, 'full'); end`)
  const { status } = await finish({ session, ...provider.consent(url, 'unstored') })
  db.exec('drop trigger full')
  db.close()
  t.ok(status >= 500, `${status}`)
  await revoked('unstored')
})

t.test('who connected what is on record, and no token is stored in clear or logged', async t => {
  const { items } = JSON.parse((await manage('GET', '/audit?subject=calendar&pageSize=200')).text)
  const mine = items.filter(({ details }: { details: { agentId?: string } }) => details.agentId === anna.id)
  const actions = new Set(mine.map(({ action }: { action: string }) => action))
  t.strictSame([...actions].sort(), ['credential.connected', 'credential.disconnected', 'credential.failed'])
  t.ok(mine.some(({ actor }: { actor: string }) => actor === people.anna.id))
  t.match((await manage('POST', '/credentials/calendar/renew')).status, 409)
  t.equal((await manage('GET', '/credentials/fixed/accounts')).status, 404)
  const metrics = (await manage('GET', '/metrics')).text
  t.match(metrics, /credential_state\{credential="calendar",state="ready"\} [1-9]/)
  await send('PUT', '/credentials/calendar/token', { agentId: stored.id, refreshToken: 'refresh-canary-stored' })
  await gateway.close()
  const data = join(directory, 'data')
  const files = readdirSync(data).map(file => readFileSync(join(data, file), 'latin1'))
  for (const text of [...files, JSON.stringify(gateway.log), JSON.stringify(items)]) t.notMatch(text, 'canary')
})

t.test('a refresh token that a command has stored goes to the server of that time alone', async t => {
  const other = await startAccountProvider(t)
  const moved = settings.config.Credentials.map(one => (one.Name === 'calendar' ? { ...one, Issuer: other.url } : one))
  const again = await startForward(t, { ...settings, config: { ...settings.config, Credentials: moved } })
  t.match(await (await again.proxy(stored.token, `${provider.url}/calendar`)).json(), { code: 'credential_needed' })
  t.strictSame(other.asked, [])
})

t.test('accounts survive a restart of the gateway', async t => {
  const asked = provider.asked.length
  const again = await startForward(t, settings)
  const answer = async ({ token }: typeof bob) => (await again.proxy(token, `${provider.url}/calendar`)).text()
  t.match(await answer(bob), /canary-bob/)
  for (const other of [anna, second]) t.match(await answer(other), /credential_needed/)
  t.equal(provider.asked.length, asked, 'nothing is had anew')
})
