/** Accounts that people connect at a real authorization server, oidc-provider, with clients that the gateway makes itself. Threats T89, T91, T92. */
import t from 'tap'
import { eventually, startGateway } from '../fixtures/gateway.ts'
import { loopbackCaFile, startLoopbackOrigin } from '../fixtures/origin.ts'
import { consentAt, startConsentProvider } from './fixtures/consent-provider.ts'

const claimsOf = (field = '') => JSON.parse(Buffer.from(field.split('.')[1] ?? '', 'base64url').toString())
const api = await startLoopbackOrigin(t, (req, res) => {
  const claims = claimsOf(req.headers.authorization)
  if (req.url?.endsWith('/refused') === true) res.statusCode = 401
  if (req.url?.endsWith('/write') === true && claims.scope?.includes('tools.write') !== true) {
    res.writeHead(403, { 'www-authenticate': 'Bearer error="insufficient_scope", scope="tools tools.write"' })
  }
  res.end(JSON.stringify(claims))
})
const consoleUrl = 'https://gateway.example'
const registering = await startConsentProvider(t, `${api.url}/`)
const documents: string[] = []
const reading = await startConsentProvider(t, `${api.url}/`, async url => {
  documents.push(url)
  const { status, text, headers } = await gateway.manage('GET', new URL(url).pathname, undefined, null)
  return new Response(text, { status, headers })
})
const connected = {
  Type: 'Connect',
  Resource: `${api.url}/`,
  ...{ Scope: 'offline_access tools', StepUpScope: 'tools.write' },
  Parameters: ['prompt=consent'],
}
const gateway = await startGateway(t, {
  alone: 'its accounts are connected',
  config: {
    System: { PublicUrl: consoleUrl },
    Proxy: { CaFile: loopbackCaFile },
    Credentials: [
      { ...connected, Name: 'registered', Issuer: registering.issuer },
      { ...connected, Name: 'documented', Issuer: reading.issuer },
    ],
    Upstreams: ['registered', 'documented'].map(name => ({
      ...{ Host: `127.0.0.1:${api.port}`, Paths: [`/${name}`], Credential: name },
    })),
  },
})
const agent = await gateway.agent()
const other = await gateway.agent()
const call = async (path: string, { token } = agent) => {
  const answer = await gateway.proxy(token, api.url + path)
  return { status: answer.status, ...((await answer.json()) as object) }
}
const send = async (method: string, path: string, body?: object) => {
  const { status, text } = await gateway.manage(method, `/credentials/${path}`, body)
  return { status, ...JSON.parse(text) }
}

/** A person connects the account of an agent; what was in the addresses. */
async function connect(name: string, { id } = agent, more: object = {}) {
  const { url, session } = await send('POST', `${name}/connect`, { agentId: id, ...more })
  const back = new URL(await consentAt(url))
  const answer = Object.fromEntries(back.searchParams)
  const done = await send('POST', `${name}/connected`, { session, ...answer })
  return { asked: Object.fromEntries(new URL(url).searchParams), back, done }
}

const ways = [
  { name: 'registered', provider: registering },
  { name: 'documented', provider: reading },
]
for (const { name, provider } of ways)
  t.test(`an account is connected with a ${name} client, renewed with rotation, and revoked`, async t => {
    const { asked, back, done } = await connect(name)
    t.match(asked, { code_challenge_method: 'S256', resource: `${api.url}/`, scope: 'offline_access tools' })
    t.equal(back.origin + back.pathname, `${consoleUrl}/console/connected/${name}`)
    t.equal(back.searchParams.get('iss'), provider.issuer)
    t.match(done, { status: 200, agentId: agent.id, state: 'ready', missing: [] })
    const own = { aud: `${api.url}/`, scope: 'tools', client_id: asked['client_id'] }
    t.match(await call(`/${name}`), { status: 200, ...own })
    t.match(await call(`/${name}`, other), { status: 403, code: 'credential_needed' })
    const [first] = provider.refreshTokens
    t.match(await call(`/${name}/refused`), { status: 401 })
    t.not(provider.refreshTokens.at(-1), first, 'it was renewed, and rotated')
    t.match(await call(`/${name}`), { status: 200, ...own })
    const refused = await call(`/${name}/write`)
    t.match(refused, { status: 403, code: 'credential_scope_needed', scope: 'tools.write' })
    const widened = await connect(name, agent, { scope: 'tools.write' })
    t.match(widened.done, { status: 200, missing: [] })
    t.match(await call(`/${name}/write`), { status: 200, scope: 'tools tools.write' })
    await call(`/${name}/refused`)
    t.match(await call(`/${name}/write`), { status: 200, scope: 'tools tools.write' }, 'a renewal keeps it')
    await connect(name, other)
    t.match(await call(`/${name}`, other), { status: 200, client_id: asked['client_id'] })
    const ended = provider.ended.length
    t.match(await send('DELETE', `${name}/token?agentId=${agent.id}`), { status: 200, revoked: true })
    await eventually(
      () => provider.ended.length,
      count => count > ended,
    )
    t.match(await call(`/${name}`), { status: 403, code: 'credential_needed' })
    t.match(await call(`/${name}`, other), { status: 200 }, 'the other account stays')
  })

t.test('one client is registered for all accounts of a credential, and its secret is shown nowhere', async t => {
  t.equal(registering.clients.length, 1)
  t.equal(reading.clients.length, 0)
  t.strictSame([...new Set(documents)], [`${consoleUrl}/oauth-clients/documented`])
  const trail = (await gateway.manage('GET', '/audit?pageSize=200')).text
  t.match(trail, `"clientId":"${registering.clients[0]}"`)
  const shown = [trail, (await gateway.manage('GET', '/credentials')).text, JSON.stringify(gateway.log)]
  const { secrets } = registering
  t.equal(secrets.length, 1)
  for (const text of shown) t.notOk(text.includes(secrets[0]!))
})
