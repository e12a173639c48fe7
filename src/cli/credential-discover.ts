import { StartupError } from '../base/refusals.ts'
import { httpsUrl } from '../config/formats.ts'
import { writeYaml } from '../config/write-yaml.ts'
import { protectedResource, registeredClient } from '../credentials/mcp-server.ts'
import { CredentialError } from '../credentials/state.ts'
import { askWith, discovered } from '../credentials/token-server.ts'
import { configHelp, configOption, readConfiguration } from './configuration.ts'
import { jsonHelp, jsonOption, printResult, readArgs, type Shell, UsageError } from './shell.ts'
import { upstreamsOf } from './upstreams.ts'

export const help = `usage: agent-gateway credential discover URL [--register] [--redirect-uri URL] [--json] [--config FILE]

Asks an MCP server which authorization server issues its tokens, and prints what gateway.yaml needs. Nothing is stored: look at
Issuer before you put it into the settings, since tokens come from there.

  --register           also makes the gateway a public client of that server (RFC 7591)
  --redirect-uri URL   where its page of consent comes back to; default http://127.0.0.1/callback, for credential connect
${jsonHelp}: ok, url, issuers, scopes, clientId
${configHelp}

Examples:
  agent-gateway credential discover https://mcp.example.com/mcp --register`

const options = {
  ...configOption,
  ...jsonOption,
  register: { type: 'boolean' },
  'redirect-uri': { type: 'string' },
} as const

const ownRedirect = 'http://127.0.0.1/callback'
/** Of each document, and of all together, milliseconds. */
const [askMs, longestMs] = [10_000, 60_000]

interface Discovered {
  readonly issuers: readonly string[]
  readonly scopes: readonly string[]
  readonly clientId: string | null
}

export async function run(shell: Shell): Promise<number> {
  const { values, positionals } = readArgs(shell, options, 1)
  const [url = ''] = positionals
  const problem = httpsUrl(url)
  if (problem !== undefined) throw new UsageError(`URL ${problem}`)
  const upstreams = await upstreamsOf(readConfiguration(shell, values.config), shell.env)
  try {
    const ask = askWith(upstreams.ownRequests, AbortSignal.timeout(longestMs), askMs)
    const { issuers, scopes } = await protectedResource(url, ask)
    const [issuer] = issuers
    if (issuer === undefined) throw new StartupError(`${url} names no authorization server.`)
    const redirectUri = values['redirect-uri'] ?? ownRedirect
    const registered =
      values.register === true
        ? await registeredClient(await discovered(issuer, ask), { redirectUri, isConfidential: false }, ask)
        : undefined
    const clientId = registered?.id ?? null
    const entries = entriesOf(url, { issuers, scopes, clientId }).trimEnd()
    return printResult(shell, values, { ok: true, url, issuers, scopes, clientId }, [entries])
  } catch (error) {
    throw error instanceof CredentialError ? new StartupError(error.message) : error
  } finally {
    await upstreams.close()
  }
}

function entriesOf(url: string, { issuers, scopes, clientId }: Discovered): string {
  const { host, hostname } = new URL(url)
  const Name = hostname.replaceAll('.', '-').slice(0, 64)
  const credential = {
    ...{ Name, Type: 'RefreshToken', McpServer: url, Issuer: issuers[0] },
    ...{ ClientId: clientId ?? 'FILL IN', ClientAuth: 'None' },
    ...(scopes.length > 0 && { Scope: scopes.join(' ') }),
  }
  const others = issuers.length > 1 ? `the server also names ${issuers.slice(1).join(', ')}` : undefined
  const document = { Credentials: [credential], Upstreams: [{ Host: host, Credential: Name }] }
  return writeYaml(document, 'Credentials', new Map(others === undefined ? [] : [[0, others]]))
}
