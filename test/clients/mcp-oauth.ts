/** The server of the MCP SDK, which wants tokens of oidc-provider: discovery, registration, consent and calls. Threat T89. */
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { requireBearerAuth } from '@modelcontextprotocol/sdk/server/auth/middleware/bearerAuth.js'
import {
  getOAuthProtectedResourceMetadataUrl,
  mcpAuthMetadataRouter,
} from '@modelcontextprotocol/sdk/server/auth/router.js'
import { createMcpExpressApp } from '@modelcontextprotocol/sdk/server/express.js'
import t from 'tap'
import { runCommand } from '../../src/cli/commands.ts'
import { eventually, startGateway } from '../fixtures/gateway.ts'
import { loopbackCaFile } from '../fixtures/origin.ts'
import { fakeShell } from '../fixtures/shell.ts'
import { testdir } from '../fixtures/testdir.ts'
import { consentAt, startConsentProvider } from './fixtures/consent-provider.ts'

const pair = { cert: readFileSync(loopbackCaFile), key: readFileSync(loopbackCaFile.replace('cert.pem', 'key.pem')) }
const app = createMcpExpressApp()
const server = createServer(pair, app)
await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
t.teardown(() => server.close())
const origin = `127.0.0.1:${(server.address() as AddressInfo).port}`
const url = new URL(`https://${origin}/mcp`)
const provider = await startConsentProvider(t, url.href)

const payloadOf = (token: string) => JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString())
const seen: { aud: string; scope: string }[] = []
const oauthMetadata = {
  ...{ issuer: provider.issuer, response_types_supported: ['code'] },
  ...{ authorization_endpoint: `${provider.issuer}/auth`, token_endpoint: `${provider.issuer}/token` },
}
app.use(mcpAuthMetadataRouter({ oauthMetadata, resourceServerUrl: url, scopesSupported: ['tools'] }))
app.use(
  '/mcp',
  requireBearerAuth({
    requiredScopes: ['tools'],
    resourceMetadataUrl: getOAuthProtectedResourceMetadataUrl(url),
    verifier: {
      async verifyAccessToken(token) {
        const { aud, scope, exp, client_id: clientId } = payloadOf(token)
        seen.push({ aud, scope })
        return { token, clientId, scopes: scope.split(' '), expiresAt: exp, resource: new URL(aud) }
      },
    },
  }),
  (_: unknown, res: { json(body: object): void }) => {
    res.json({ jsonrpc: '2.0', id: 1, result: { tools: [] } })
  },
)

const directory = testdir(t)
const file = join(directory, 'gateway.yaml')
const base = { Proxy: { CaFile: loopbackCaFile } }
const run = (env: Record<string, string>, ...args: string[]) => {
  const shell = fakeShell(['credential', ...args, '--config', file], env)
  return { code: runCommand(shell), printed: shell.printed, complained: shell.complained }
}

t.test('what an MCP server says is enough to call it, once a person has consented', async t => {
  writeFileSync(file, JSON.stringify(base))
  const found = run({}, 'discover', url.href, '--register', '--json')
  t.equal(await found.code, 0, found.complained.join('\n'))
  const { issuers, scopes, clientId } = JSON.parse(found.printed.join('\n'))
  t.strictSame(
    issuers.map((issuer: string) => new URL(issuer).href),
    [new URL(provider.issuer).href],
  )
  t.strictSame(scopes, ['tools'])
  const config = {
    ...base,
    Credentials: [
      {
        ...{ Name: 'mcp', Type: 'RefreshToken', McpServer: url.href, Issuer: provider.issuer, ClientId: clientId },
        ...{ ClientAuth: 'None', Scope: 'offline_access tools' },
      },
    ],
    Upstreams: [{ Host: origin, Credential: 'mcp' }],
  }
  const gateway = await startGateway(t, { directory, alone: 'its credential is connected', config })
  writeFileSync(file, JSON.stringify(config))
  const { token } = await gateway.agent()
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' })
  const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
  const call = () => gateway.proxy(token, url.href, { method: 'POST', headers, body })
  const needed = { code: -32_010, data: { code: 'credential_needed', status: 403, credential: 'mcp' } }
  t.match(await (await call()).json(), { id: 1, error: needed })
  t.strictSame(seen, [], 'nothing is sent without a token')
  const env = { SYSTEM__SERVER__HTTP__PORT: String(gateway.port), AGENT_GATEWAY_TOKEN: gateway.adminToken }
  const command = run(env, 'connect', 'mcp', '--param', 'prompt=consent')
  const page = await eventually(
    () => /^https:\S+/m.exec(command.complained.join('\n'))?.[0] ?? '',
    text => text !== '',
  )
  t.equal(new URL(page).searchParams.get('resource'), url.href)
  const back = await consentAt(page)
  t.match(back, /^http:\/\/127\.0\.0\.1:\d+\/callback\?code=/)
  await fetch(back)
  t.equal(await command.code, 0, command.complained.join('\n'))
  t.match(await (await call()).json(), { result: { tools: [] } })
  t.strictSame(seen, [{ aud: url.href, scope: 'tools' }])
})
