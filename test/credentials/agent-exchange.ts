/** Exchanges of the token of an agent (RFC 8693), and identity assertions as grants. Threat T88 of SECURITY.md. */
import t from 'tap'
import type { CredentialSetting } from '../../src/config/credentials.ts'
import { sources } from '../../src/credentials/sources.ts'
import { createClock } from '../fixtures/clock.ts'
import { clientSetting, type TokenServer, tokenServer } from '../fixtures/token-server.ts'

const assertion = 'urn:ietf:params:oauth:token-type:id-jag'
const jag: Partial<CredentialSetting> = {
  ...{ Type: 'IdJag', Audience: 'https://chat.example', Resource: 'https://chat.example/api' },
  ...{ ResourceSecret: 'chat', ResourceClientId: 'at-chat' },
}

function open() {
  const server = tokenServer()
  server.documents.set('https://chat.example/.well-known/oauth-authorization-server', {
    issuer: 'https://chat.example',
    token_endpoint: 'https://chat.example/token',
  })
  server.onAsk = ({ url }) => {
    const issued = { access_token: 'jag.jwt.sig', issued_token_type: assertion, token_type: 'N_A' }
    server.answer = url.includes('idp') ? issued : { access_token: 'at-1', token_type: 'Bearer', expires_in: 60 }
  }
  return server
}

/** @param subjectToken null: there is none */
function obtain(server: TokenServer, more: Partial<CredentialSetting>, subjectToken: string | null = 'agent.jwt.sig') {
  const setting = clientSetting(more)
  if (setting.Type === 'RefreshToken' || setting.Type === 'Connect') throw new TypeError('its token is in the store')
  const secrets = { read: async (name: string) => (name === 'key' ? 'idp-secret' : `${name}-secret`) }
  const parts = { clock: createClock(), ownRequests: server, servers: new Map(), secrets }
  const subject = subjectToken === null ? {} : { subjectToken }
  return sources[setting.Type](setting, { ...parts, ...subject }, new AbortController().signal)
}

t.test('the client of the provider and that of the resource have their own secrets', async t => {
  const server = open()
  t.strictSame(await obtain(server, jag), { value: 'at-1', lifetimeMs: 60_000 })
  const [first, second] = server.asked
  t.equal(first?.fields['authorization'], `Basic ${btoa('a+client:idp%2Dsecret')}`)
  t.match(first?.form, { requested_token_type: assertion, audience: 'https://chat.example', subject_token: /agent/ })
  t.equal(second?.fields['authorization'], `Basic ${btoa('at%2Dchat:chat%2Dsecret')}`)
  t.strictSame(second?.form, {
    grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer',
    assertion: 'jag.jwt.sig',
  })
})

t.test(
  'without a secret of its own the client of the resource is a public one: that of the provider stays there',
  async t => {
    const server = open()
    await obtain(server, { ...jag, ResourceSecret: undefined, ResourceClientId: undefined })
    t.match(server.asked[1], { fields: { authorization: undefined }, form: { client_id: 'a client' } })
    t.notMatch(JSON.stringify(server.asked[1]), /idp-secret|idp%2Dsecret/)
    await obtain(server, { ...jag, ClientAuth: 'None', Secret: undefined })
    t.match(server.asked[3]?.fields['authorization'], /^Basic /)
  },
)

t.test('an answer of the provider that is no such assertion is not passed on', async t => {
  const server = open()
  server.onAsk = () => {
    server.answer = { access_token: 'an-access-token', token_type: 'Bearer' }
  }
  await t.rejects(obtain(server, jag), { kind: 'failing', message: /no identity assertion grant/ })
  t.equal(server.asked.length, 1)
  server.onAsk = () => {
    server.answer = { access_token: 'assertion', token_type: 'N_A', issued_token_type: assertion }
  }
  // An assertion is no access token.
  await t.rejects(obtain(server, { Type: 'AgentTokenExchange' }), { kind: 'failing', message: /cannot be used/ })
})

t.test('a token that is not taken is told apart from a gateway that is not', async t => {
  const server = open()
  server.status = 400
  for (const [error, kind] of [
    ['invalid_request', 'needed'],
    ['invalid_target', 'needed'],
    ['invalid_client', 'failing'],
    ['unauthorized_client', 'failing'],
  ]) {
    server.onAsk = () => {
      server.answer = { error }
    }
    await t.rejects(obtain(server, { Type: 'AgentTokenExchange' }), { kind, message: new RegExp(`answers ${error}`) })
  }
  await t.rejects(obtain(server, jag, null), { kind: 'needed', message: /Each agent gets its own/ })
})

t.test('an MCP server names the issuer of the resource, and need not name the provider of the agent', async t => {
  const server = open()
  const [McpServer, Issuer] = ['https://mcp.example/mcp', 'https://idp.example']
  server.documents.set('https://mcp.example/.well-known/oauth-protected-resource/mcp', {
    resource: McpServer,
    authorization_servers: ['https://chat.example'],
  })
  server.documents.set('https://idp.example/.well-known/openid-configuration', {
    issuer: Issuer,
    token_endpoint: 'https://idp.example/token',
  })
  const asked = { ...jag, McpServer, Issuer, TokenUrl: undefined, Resource: undefined }
  t.match(await obtain(server, asked), { value: 'at-1' })
  server.documents.set('https://mcp.example/.well-known/oauth-protected-resource/mcp', {
    resource: McpServer,
    authorization_servers: [Issuer],
  })
  await t.rejects(obtain(server, asked), { message: /does not name the authorization server https:\/\/chat.example/ })
})
