import { resolve } from 'node:path'
import { bootstrapFile, type Credential, parseCredential } from '../agents/bootstrap.ts'
import { parseJson } from '../base/json.ts'
import { isObject } from '../base/records.ts'
import { StartupError } from '../errors.ts'
import { readPrivateFile } from '../storage/private-file.ts'
import { type Configuration, configHelp, configOption, readConfiguration } from './configuration.ts'
import { type Entrypoint, findEntrypoint, postJson } from './entrypoint.ts'
import { readArgs, type Shell } from './shell.ts'

export const help = `usage: agent-gateway token [--at ADDRESS] [--config FILE]

Asks the running gateway for a token of the first admin and prints it alone on a line.
The credential is that of Security:Bootstrap or of bootstrap.json in Storage:DataDirectory.

  curl -H "Authorization: Bearer $(agent-gateway token)" http://127.0.0.1:7080/agents

  --at ADDRESS   address of the gateway, as printed at start: http://HOST:PORT, https://HOST:PORT or unix:PATH;
                 if absent, the address in the configuration
${configHelp}`

const options = { ...configOption, at: { type: 'string' } } as const

export async function run(shell: Shell): Promise<number> {
  const { values } = readArgs(shell, options)
  const configuration = readConfiguration(shell, values.config)
  const credential = await readCredential(configuration)
  shell.print(await requestToken(await findEntrypoint(configuration, values.at), credential))
  return 0
}

async function readCredential({ config, baseDirectory }: Configuration): Promise<Credential> {
  const { AgentId, ClientSecret } = config.Security.Bootstrap
  if (AgentId !== undefined && ClientSecret !== undefined) return { agentId: AgentId, clientSecret: ClientSecret }
  const path = bootstrapFile(resolve(baseDirectory, config.Storage.DataDirectory))
  const credential = parseCredential(await readPrivateFile(path))
  if (credential !== undefined) return credential
  throw new StartupError(
    `${path} contains no credential. The first start of the gateway writes it; if it was lost: agent-gateway admin reset`,
  )
}

async function requestToken(entrypoint: Entrypoint, credential: Credential): Promise<string> {
  const { status, text } = await postJson(entrypoint, '/tokens', credential)
  if (status === 401) {
    throw new StartupError(
      `The gateway at ${entrypoint.name} does not accept the credential of the first admin. For a new one: agent-gateway admin reset`,
    )
  }
  const token = status === 200 ? accessToken(text) : undefined
  if (token !== undefined) return token
  throw new StartupError(`The server at ${entrypoint.name} answered ${status}, not with a token. Is it the gateway?`)
}

function accessToken(text: string): string | undefined {
  const answer = parseJson(text)
  const token = isObject(answer) ? answer['accessToken'] : undefined
  return typeof token === 'string' ? token : undefined
}
