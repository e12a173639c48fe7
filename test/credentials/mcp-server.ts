/** MCP servers, and the authorization servers that they name: neither is trusted beyond the settings. Threat T89 of SECURITY.md. */
import t from 'tap'
import { beginCodeConsent } from '../../src/credentials/consent.ts'
import { type AskDocument, protectedResource, registeredClient } from '../../src/credentials/mcp-server.ts'
import { createClock } from '../fixtures/clock.ts'
import { clientSetting, obtainFrom, tokenServer } from '../fixtures/token-server.ts'

const url = 'https://mcp.example/mcp'
const issuer = 'https://idp.example'
const wellKnown = 'https://mcp.example/.well-known/oauth-protected-resource'
const own = { resource: url, authorization_servers: [issuer], scopes_supported: ['read', 'write'] }

/** Answers by address; others are not there. */
function askOf(documents: Record<string, unknown>) {
  const asked: string[] = []
  const ask: AskDocument = async at => {
    asked.push(at)
    const found = documents[at]
    if (found instanceof Response) return found
    const headers = { 'content-type': 'application/json' }
    return new Response(JSON.stringify(found ?? {}), { status: found === undefined ? 404 : 200, headers })
  }
  return { ask, asked }
}

const challenged = (to: string) =>
  new Response(null, { status: 401, headers: { 'www-authenticate': `Bearer resource_metadata="${to}"` } })

t.test('the document of an MCP server is at its path, at its root, or where its 401 says', async t => {
  const found = { issuers: [issuer], scopes: ['read', 'write'] }
  const atPath = askOf({ [`${wellKnown}/mcp`]: own })
  t.strictSame(await protectedResource(url, atPath.ask), found)
  t.strictSame(atPath.asked, [`${wellKnown}/mcp`])
  t.strictSame(await protectedResource(url, askOf({ [wellKnown]: own }).ask), found)
  const named = askOf({ [url]: challenged('https://mcp.example/meta'), 'https://mcp.example/meta': own })
  t.strictSame(await protectedResource(url, named.ask), found)
})

t.test('no document is read at another host, and none of another resource counts', async t => {
  for (const to of [
    'https://evil.example/meta',
    'http://mcp.example/meta',
    'https://mcp.example:8443/meta',
    '//evil.example',
  ]) {
    const { ask, asked } = askOf({ [url]: challenged(to), [to]: own })
    await t.rejects(protectedResource(url, ask), { kind: 'failing', message: /has no document/ })
    t.notOk(asked.includes(to), to)
  }
  for (const resource of ['https://mcp.example/other', 'https://evil.example/mcp', 'https://mcp.example/'])
    await t.rejects(protectedResource(url, askOf({ [wellKnown]: { ...own, resource } }).ask), {
      message: /another resource/,
    })
})

t.test('names of issuers and scopes that are none are left out', async t => {
  const odd = {
    ...{
      resource: url,
      authorization_servers: ['http://idp.example', 7, 'https://idp.example/\u001b[2J', 'no', issuer],
    },
    scopes_supported: ['a b', 'ok', '\u202e', 7, ...Array.from({ length: 100 }, (_, i) => `s${i}`)],
  }
  const { issuers, scopes } = await protectedResource(url, askOf({ [wellKnown]: odd }).ask)
  t.strictSame(issuers, [issuer])
  t.equal(scopes.length, 64)
  t.equal(scopes[0], 'ok')
  const none = { resource: url, authorization_servers: 'https://idp.example' }
  t.strictSame(await protectedResource(url, askOf({ [wellKnown]: none }).ask), { issuers: [], scopes: [] })
})

const setting = clientSetting({ McpServer: url, Issuer: issuer, TokenUrl: undefined, Scope: 'read' })

function open(more: object = {}) {
  const server = tokenServer()
  server.documents.set(`${wellKnown}/mcp`, own)
  const endpoints = { authorization_endpoint: `${issuer}/auth`, token_endpoint: `${issuer}/token` }
  server.documents.set(`${issuer}/.well-known/oauth-authorization-server`, { issuer, ...endpoints, ...more })
  return server
}

t.test('a token is asked for the MCP server, at the issuer of the settings', async t => {
  const server = open()
  t.match(await obtainFrom(server, 'secret', { setting, clock: createClock() }), { value: 'token-1' })
  t.match(server.asked[0], { url: `${issuer}/token`, form: { resource: url, scope: 'read' } })
})

t.test('an MCP server that names another issuer by now gets no token, and the other issuer nothing', async t => {
  const server = open()
  server.documents.set(`${wellKnown}/mcp`, { ...own, authorization_servers: ['https://evil.example'] })
  const refused = obtainFrom(server, 'secret', { setting, clock: createClock() })
  await t.rejects(refused, { kind: 'needed', message: /does not name the authorization server https:\/\/idp.example/ })
  t.strictSame(server.asked, [])
  const other = open({ issuer: 'https://evil.example' })
  await t.rejects(obtainFrom(other, 'secret', { setting, clock: createClock() }), {
    kind: 'failing',
    message: /cannot be used/,
  })
  t.strictSame(other.asked, [])
})

t.test('people consent for the MCP server, with PKCE that its issuer knows', async t => {
  const begin = (server: ReturnType<typeof open>) => {
    const parts = {
      clock: createClock(),
      ownRequests: server,
      servers: new Map(),
      secrets: { read: async () => 'secret' },
    }
    const consent = { setting, parts, more: {}, signal: new AbortController().signal }
    return beginCodeConsent(consent, 'http://127.0.0.1/callback')
  }
  const { url: page } = await begin(open({ code_challenge_methods_supported: ['S256'] }))
  t.match(Object.fromEntries(new URL(page).searchParams), {
    resource: url,
    code_challenge_method: 'S256',
    scope: 'read',
  })
  for (const methods of [undefined, ['plain']])
    await t.rejects(begin(open({ code_challenge_methods_supported: methods })), { message: /PKCE/ })
})

t.test(
  'a client is registered as the caller and the server can have it, and nothing that is less than that',
  async t => {
    const own = { redirectUri: 'http://127.0.0.1/callback', isConfidential: false }
    const web = { redirectUri: 'https://gw.example/console/connected/mcp', isConfidential: true }
    const at = `${issuer}/register`
    const server = { issuer, registration_endpoint: at }
    let posted: unknown
    const ask =
      (answer: object, status = 201): AskDocument =>
      async (_, body) => {
        posted = JSON.parse(body ?? '')
        return new Response(JSON.stringify(answer), { status, headers: { 'content-type': 'application/json' } })
      }
    const open = { id: 'c-1', auth: 'None', secret: undefined, endsAt: null }
    t.strictSame(await registeredClient(server, own, ask({ client_id: 'c-1' })), open)
    const { redirectUri } = own
    t.match(posted, { redirect_uris: [redirectUri], token_endpoint_auth_method: 'none', application_type: 'native' })
    const secret = { client_id: 'c', client_secret: 's', client_secret_expires_at: 0 }
    const basic = { id: 'c', auth: 'Basic', secret: 's', endsAt: null }
    t.strictSame(await registeredClient(server, web, ask(secret)), basic)
    t.match(posted, { application_type: 'web', token_endpoint_auth_method: 'client_secret_basic' })
    const ways = (...token_endpoint_auth_methods_supported: string[]) => ({
      ...server,
      token_endpoint_auth_methods_supported,
    })
    const ending = ask({ ...secret, client_secret_expires_at: 7 })
    t.strictSame(await registeredClient(ways('private_key_jwt', 'none', 'client_secret_post'), web, ending), {
      ...basic,
      ...{ auth: 'Post', endsAt: 7_000 },
    })
    t.strictSame(await registeredClient(ways('none'), web, ask({ client_id: 'c-1' })), open)
    for (const method of ['private_key_jwt', 'toString'])
      await t.rejects(registeredClient(server, web, ask({ ...secret, token_endpoint_auth_method: method })), {
        message: /cannot be/,
      })
    for (const odd of [{ client_id: 'c' }, { ...secret, client_secret: 's\n' }])
      await t.rejects(registeredClient(server, web, ask(odd)), { message: /cannot be/ })
    const method = { ...secret, token_endpoint_auth_method: 'client_secret_basic' }
    await t.rejects(registeredClient(server, own, ask(method)), { message: /no public clients: use the type Connect/ })
    await t.rejects(registeredClient(server, own, ask({ error: 'invalid_redirect_uri' }, 400)), {
      message: /refuses .*400/,
    })
    await t.rejects(registeredClient({ issuer }, own, ask({})), { message: /registers no clients/ })
    for (const id of ['c\u202etxt', 'c\u009b2J', 'c\n', 'c'.repeat(1_001)])
      await t.rejects(registeredClient(server, own, ask({ client_id: id })), { message: /without a usable id/ })
  },
)
