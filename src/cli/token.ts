import { resolve } from 'node:path'
import { bootstrapFile, type Credential, parseCredential } from '../agents/bootstrap.ts'
import type { Config } from '../config/schema.ts'
import { StartupError } from '../errors.ts'
import { readPrivateFile } from '../storage/private-file.ts'
import { configHelp, configOption, readConfiguration } from './configuration.ts'
import type { Shell } from './shell.ts'
import { readArgs } from './shell.ts'

export const help = `usage: agent-gateway token [--config FILE]

Asks the running gateway for a token of the first admin and prints it alone on a line.
The credential is that of Security:Bootstrap or of bootstrap.json in Storage:DataDirectory.

  curl -H "Authorization: Bearer $(npm run -s token)" http://127.0.0.1:7080/agents

${configHelp}`

export async function run(shell: Shell): Promise<number> {
  const { values } = readArgs(shell, configOption)
  const { config, baseDirectory } = readConfiguration(shell, values.config)
  const credential = await readCredential(config, resolve(baseDirectory, config.Storage.DataDirectory))
  shell.print(await requestToken(baseUrl(config), credential))
  return 0
}

async function readCredential(config: Config, dataDirectory: string): Promise<Credential> {
  const { AgentId, ClientSecret } = config.Security.Bootstrap
  if (AgentId !== undefined && ClientSecret !== undefined) return { agentId: AgentId, clientSecret: ClientSecret }
  const path = bootstrapFile(dataDirectory)
  const credential = parseCredential(await readPrivateFile(path))
  if (credential !== undefined) return credential
  throw new StartupError(`${path} holds no credential. Start the gateway once; it writes the file.`)
}

/** Where the gateway of this configuration is reached from the same machine. */
function baseUrl(config: Config): string {
  const { Host, Port } = config.System.Server.Http
  const host = { '0.0.0.0': '127.0.0.1', '::': '::1' }[Host] ?? Host
  return `http://${host.includes(':') ? `[${host}]` : host}:${Port}`
}

async function requestToken(url: string, credential: Credential): Promise<string> {
  const response = await post(`${url}/tokens`, credential)
  if (response.status === 401) {
    throw new StartupError(`The gateway at ${url} does not accept the credential of the first admin.`)
  }
  const body = response.ok ? ((await response.json()) as { readonly accessToken?: unknown }) : {}
  if (typeof body.accessToken === 'string') return body.accessToken
  throw new StartupError(`The server at ${url} answered ${response.status}, not with a token. Is it the gateway?`)
}

async function post(url: string, credential: Credential): Promise<Response> {
  const headers = { 'content-type': 'application/json' }
  try {
    return await fetch(url, { method: 'POST', headers, body: JSON.stringify(credential), redirect: 'error' })
  } catch {
    throw new StartupError(`No gateway answers at ${new URL(url).origin}. Start it with: npm start`)
  }
}
