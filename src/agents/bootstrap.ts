import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { isRefusal, StartupError } from '../errors.ts'
import { readPrivateFile, writePrivateFile } from '../storage/private-file.ts'
import type { Registry } from './registry.ts'
import { generateSecret, secretProblem } from './secret.ts'

const uuid = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

export interface BootstrapOptions {
  readonly registry: Registry
  /** Storage:DataDirectory. */
  readonly dataDirectory: string
  /** Security:Bootstrap. */
  readonly agentId: string | undefined
  readonly clientSecret: string | undefined
}

export interface Credential {
  readonly agentId: string
  readonly clientSecret: string
}

/** Where the credential of the first admin lies. */
export const bootstrapFile = (dataDirectory: string): string => join(dataDirectory, 'bootstrap.json')

/**
 * Makes the first admin when there is no active one. The file comes before the store: a crash between the two
 * leaves a credential that the next start uses, never an admin with an unknown secret.
 * Returns the id of the admin made, or undefined. Rejects with StartupError when it cannot.
 */
export async function bootstrapAdmin(options: BootstrapOptions): Promise<string | undefined> {
  if (options.registry.hasActive('admin')) return undefined
  const { agentId, clientSecret } = configured(options) ?? (await fromFile(options))
  const admin = await options.registry.register(
    { id: agentId, name: 'admin', ownerId: 'operator', clientSecret, roles: ['admin'] },
    { actor: 'gateway', requestId: null },
  )
  if (isRefusal(admin)) throw new StartupError(`The first admin, ${agentId}, could not be created: ${admin.detail}`)
  return admin.id
}

function configured({ agentId, clientSecret }: BootstrapOptions): Credential | undefined {
  if (agentId !== undefined && !uuid.test(agentId)) throw new StartupError('Security:Bootstrap:AgentId: must be a UUID')
  if (clientSecret === undefined) return undefined
  const problem = secretProblem(clientSecret)
  if (problem !== undefined) throw new StartupError(`Security:Bootstrap:ClientSecret: ${problem}`)
  if (agentId === undefined)
    throw new StartupError('Security:Bootstrap:AgentId: must be set together with ClientSecret')
  return { agentId: agentId.toLowerCase(), clientSecret }
}

async function fromFile({ registry, dataDirectory, agentId }: BootstrapOptions): Promise<Credential> {
  const path = bootstrapFile(dataDirectory)
  const found = parseCredential(await readPrivateFile(path))
  const wanted = agentId?.toLowerCase()
  // Left by a crash before the admin was stored: someone may have read it already, so it stays true.
  const isUnused = found !== undefined && registry.get(found.agentId) === undefined
  if (isUnused && (wanted ?? found.agentId) === found.agentId) return found
  const made: Credential = { agentId: wanted ?? randomUUID(), clientSecret: generateSecret() }
  await writePrivateFile(path, `${JSON.stringify(made, null, 2)}\n`, true)
  return made
}

/** The credential in the text of bootstrap.json; undefined when there is none. */
export function parseCredential(text: string | undefined): Credential | undefined {
  const value = parseJson(text)
  if (typeof value !== 'object' || value === null || !('agentId' in value) || !('clientSecret' in value))
    return undefined
  const { agentId, clientSecret } = value
  if (typeof agentId !== 'string' || typeof clientSecret !== 'string') return undefined
  return uuid.test(agentId) && secretProblem(clientSecret) === undefined ? { agentId, clientSecret } : undefined
}

function parseJson(text: string | undefined): unknown {
  try {
    return JSON.parse(text ?? 'null')
  } catch {
    return undefined
  }
}
