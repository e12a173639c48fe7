/** A management token of the first admin, from the running gateway. */
import { resolve } from 'node:path'
import { bootstrapFile, type Credential, parseCredential } from '../agents/bootstrap.ts'
import { parseJson } from '../base/json.ts'
import { isObject } from '../base/records.ts'
import { StartupError } from '../base/refusals.ts'
import { usesPostgres } from '../gateway/storage.ts'
import { readPrivateFile } from '../runtime/private-file.ts'
import type { Configuration } from './configuration.ts'
import { callJson, type GatewayAddress } from './gateway-address.ts'

/** @throws StartupError when there is no credential, or the gateway does not take it */
export async function requestAdminToken(configuration: Configuration, gateway: GatewayAddress): Promise<string> {
  return requestToken(gateway, await readCredential(configuration))
}

async function readCredential({ config, file, baseDirectory }: Configuration): Promise<Credential> {
  const { AgentId, ClientSecret } = config.Security.Bootstrap
  if (AgentId !== undefined && ClientSecret !== undefined) return { agentId: AgentId, clientSecret: ClientSecret }
  if (usesPostgres(config)) {
    throw new StartupError('Security:Bootstrap: AgentId and ClientSecret must be set to those of an admin.')
  }
  const path = bootstrapFile(resolve(baseDirectory, config.Storage.DataDirectory))
  const credential = parseCredential(await readPrivateFile(path))
  if (credential !== undefined) return credential
  if (file === undefined) {
    throw new StartupError(
      `There is no gateway.yaml here, and ${path} contains no credential. Go to the folder of gateway.yaml, or name it with --config.`,
    )
  }
  throw new StartupError(
    `${path} contains no credential. The first start of the gateway writes it; if it was lost: agent-gateway admin reset`,
  )
}

async function requestToken(gateway: GatewayAddress, credential: Credential): Promise<string> {
  const { status, text } = await callJson(gateway, { method: 'POST', path: '/tokens', body: credential })
  if (status === 401) {
    throw new StartupError(
      `The gateway at ${gateway.name} does not accept the credential of the first admin. For a new one: agent-gateway admin reset`,
    )
  }
  const token = status === 200 ? accessToken(text) : undefined
  if (token !== undefined) return token
  throw new StartupError(`The server at ${gateway.name} answered ${status}, not with a token. Is it the gateway?`)
}

function accessToken(text: string): string | undefined {
  const answer = parseJson(text)
  const token = isObject(answer) ? answer['accessToken'] : undefined
  return typeof token === 'string' ? token : undefined
}
