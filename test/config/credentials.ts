import t from 'tap'
import { loadConfig } from '../../src/config/load.ts'

const key = { Name: 'key', FromEnv: 'KEY' }

/** What is wrong with one credential. */
function problemOf(credential: object, secrets: readonly object[] = [key], more: object = {}): string | undefined {
  const text = JSON.stringify({ Secrets: secrets, Credentials: [{ Name: 'one', ...credential }], ...more })
  const loaded = loadConfig({ file: { path: 'gateway.yaml', text }, env: {} })
  return 'problems' in loaded ? JSON.stringify(loaded.problems) : undefined
}

const refresh = { Type: 'RefreshToken', ClientId: 'me', TokenUrl: 'https://idp.example/token' }

t.test('a credential that asks a server names it in one way', async t => {
  for (const Type of ['ClientCredentials', 'RefreshToken', 'TokenExchange']) {
    const own = { Type, ClientId: 'me', Secret: 'key' }
    t.match(problemOf(own), new RegExp(`Issuer or TokenUrl must be set for ${Type}`))
    t.equal(problemOf({ ...own, Issuer: 'https://idp.example' }), undefined)
    const both = { ...own, Issuer: 'https://idp.example', TokenUrl: 'https://idp.example/token' }
    t.match(problemOf(both), /Issuer and TokenUrl must not both be set/)
  }
  t.equal(problemOf({ Type: 'JwtBearer', Secret: 'key', Issuer: 'https://idp.example' }), undefined)
  t.match(problemOf({ Secret: 'key', Issuer: 'https://idp.example' }), /Issuer must not be set for Value/)
  t.match(problemOf({ ...refresh, Secret: 'key', Issuer: 'http://idp.example' }), /https/)
})

t.test('a public client has no secret, and others have one', async t => {
  t.equal(problemOf({ ...refresh, ClientAuth: 'None' }), undefined)
  t.match(problemOf({ ...refresh, ClientAuth: 'None', Secret: 'key' }), /Secret must not be set with ClientAuth None/)
  t.match(problemOf(refresh), /Secret must name an entry of Secrets/)
  const machine = { ...refresh, Type: 'ClientCredentials', ClientAuth: 'None' }
  t.match(problemOf(machine), /ClientAuth must not be None for ClientCredentials/)
})

t.test('the first refresh token is a secret, of that type alone', async t => {
  t.equal(problemOf({ ...refresh, Secret: 'key', RefreshToken: 'key' }), undefined)
  t.match(problemOf({ ...refresh, Secret: 'key', RefreshToken: 'none' }), /RefreshToken must name an entry of Secrets/)
  t.match(problemOf({ Secret: 'key', RefreshToken: 'key' }), /RefreshToken must not be set for Value/)
})

const Jwt = { Authority: 'https://login.example', Audience: 'gateway' }
const external = { Security: { AgentAuth: { ExternalIdentity: { Provider: 'Jwt', Jwt } } } }

t.test('what is had for the token of an agent needs a provider of such tokens', async t => {
  const exchange = { ...refresh, Type: 'AgentTokenExchange', Secret: 'key' }
  t.match(problemOf(exchange), /AgentTokenExchange needs Security:AgentAuth:ExternalIdentity/)
  const jag = { ...exchange, Type: 'IdJag', Audience: 'https://chat.example' }
  for (const [entry, problem] of [
    [exchange, undefined],
    [jag, undefined],
    [{ ...exchange, Secret: undefined, ClientAuth: 'None', ActorToken: 'key' }, undefined],
    [{ ...exchange, ActorToken: 'none' }, /ActorToken must name an entry of Secrets/],
    [{ ...exchange, ClientAuth: 'Assertion' }, /ClientAuth must not be Assertion for AgentTokenExchange/],
    [{ ...exchange, ResourceSecret: 'key' }, /ResourceClientId and ResourceSecret are for IdJag alone/],
    [{ ...jag, ActorToken: 'key' }, /ActorToken must not be set for IdJag/],
    [{ ...jag, Audience: 'chat' }, /Audience: must be an http or https URL/],
    [{ ...jag, Audience: undefined }, /Audience must be set for IdJag/],
    [{ ...jag, ResourceSecret: 'none' }, /ResourceSecret must name an entry of Secrets/],
  ] as const)
    t.match(problemOf(entry, [key], external) ?? 'none', problem ?? /^none$/)
  const store = { Name: 'far', FromUrl: 'https://store.example/', Credential: 'one' }
  t.match(problemOf(exchange, [key, store], external), /a store cannot be read with AgentTokenExchange/)
})

t.test('a token for an MCP server comes from an issuer of the settings, and goes to that server alone', async t => {
  const mcp = { ...refresh, TokenUrl: undefined, Secret: 'key', McpServer: 'https://mcp.example/mcp' }
  const whole = { ...mcp, Issuer: 'https://idp.example' }
  t.equal(problemOf(whole), undefined)
  t.match(problemOf(mcp), /Issuer must be set with McpServer/)
  t.match(problemOf({ ...whole, Resource: 'https://mcp.example' }), /McpServer and Resource must not both be set/)
  t.match(problemOf({ Secret: 'key', McpServer: 'https://mcp.example' }), /McpServer must not be set for Value/)
  const at = (Host: string) => problemOf(whole, [key], { Upstreams: [{ Host, Credential: 'one' }] })
  for (const host of ['mcp.example', 'MCP.example:443']) t.equal(at(host), undefined)
  for (const host of ['evil.example', '*.mcp.example', 'mcp.example:8443'])
    t.match(at(host), /Host must be that of McpServer of one/)
})

t.test('people consent at a server with a document, or at a page that is named', async t => {
  const mail = { Type: 'Connect', ClientId: 'gateway', ClientAuth: 'None', Issuer: 'https://idp.example' }
  t.equal(problemOf({ ...mail, Per: 'Owner', Parameters: ['prompt=consent'] }), undefined)
  const { Issuer: _, ...unnamed } = { ...mail, TokenUrl: 'https://idp.example/token' }
  t.match(problemOf(unnamed), /AuthorizationUrl or DeviceUrl must be set beside TokenUrl/)
  for (const name of ['AuthorizationUrl', 'DeviceUrl'])
    t.equal(problemOf({ ...unnamed, [name]: 'https://idp.example/consent' }), undefined)
  t.match(problemOf({ ...mail, RefreshToken: 'key' }), /RefreshToken must not be set for Connect/)
  for (const other of [
    { Per: 'All' },
    { Parameters: ['a=b'] },
    { AuthorizationUrl: 'https://idp.example' },
    { DeviceUrl: 'https://idp.example' },
  ])
    t.match(
      problemOf({ Secret: 'key', ...other }),
      /AuthorizationUrl, DeviceUrl, Parameters and Per must not be set for Value/,
    )
  const own = { Type: 'Connect', Issuer: 'https://idp.example' }
  t.equal(problemOf(own), undefined, 'the gateway makes the client itself')
  t.equal(problemOf({ ...own, Scope: 'read', StepUpScope: 'write' }), undefined)
  t.match(problemOf({ ...own, StepUpScope: 'write' }), /Scope must be set with StepUpScope/)
  t.match(problemOf({ Secret: 'key', StepUpScope: 'write' }), /StepUpScope must not be set for Value/)
  t.match(problemOf({ ...own, Secret: 'key' }), /ClientId must be set with Secret/)
  const atToken = { Type: 'Connect', TokenUrl: 'https://idp.example/token', AuthorizationUrl: 'https://idp.example' }
  t.match(problemOf(atToken), /ClientId must be set with TokenUrl/)
  const stored = { Name: 'stored', FromUrl: 'https://vault.example/x', Credential: 'one' }
  t.match(problemOf(mail, [stored]), /Credential must not be of type Connect/)
})
