import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { parseJson } from '../base/json.ts'
import { isObject } from '../base/records.ts'
import { isRefusal, StartupError } from '../base/refusals.ts'
import { uuid } from '../config/formats.ts'
import type { Clock } from '../runtime/clock.ts'
import { readPrivateFile, writePrivateFile } from '../runtime/private-file.ts'
import type { AgentRecord, Store } from '../storage/store.ts'
import { probationTrust } from './agent.ts'
import type { Registry } from './registry.ts'
import { generateSecret, type SecretHasher, secretProblem } from './secret.ts'

interface FirstAdmin {
  readonly dataDirectory: string
  /** Whether a credential may be made and written there; otherwise it must be configured. */
  readonly mayMakeCredential: boolean
  /** Security:Bootstrap, as config/ has checked it. */
  readonly agentId: string | undefined
  readonly clientSecret: string | undefined
}

const mustBeSet =
  'Security:Bootstrap: AgentId and ClientSecret must be set for the first admin, because none is generated when Storage:Provider is PostgreSQL.'

export interface BootstrapOptions extends FirstAdmin {
  readonly registry: Registry
  readonly store: Pick<Store, 'agents'>
}

export interface ResetOptions extends FirstAdmin {
  readonly store: Pick<Store, 'agents'>
  readonly secrets: Pick<SecretHasher, 'hash'>
  readonly clock: Clock
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
 * Returns the id of the admin made; undefined when there is one already, or another gateway has just made it. Rejects with StartupError when it cannot.
 */
export async function bootstrapAdmin(options: BootstrapOptions): Promise<string | undefined> {
  if (options.registry.hasActive('admin')) return undefined
  const { agentId, clientSecret } = configured(options) ?? (await fromFile(options))
  const admin = await options.registry.register(
    { id: agentId, name: 'admin', ownerId: 'operator', clientSecret, roles: ['admin'] },
    { actor: 'gateway', requestId: null },
  )
  if (!isRefusal(admin)) return admin.id
  if (admin.refusal === 'already_exists' && (await hasAdmin(options.store))) return undefined
  throw new StartupError(`The first admin, ${agentId}, could not be created: ${admin.detail}`)
}

const hasAdmin = async ({ agents }: BootstrapOptions['store']): Promise<boolean> =>
  (await agents.all()).some(({ status, roles }) => status === 'Active' && roles.includes('admin'))

/** Why a store that is made now would have no admin, when no credential may be generated; undefined when one is configured. */
export const firstAdminProblem = (given: {
  readonly AgentId: string | undefined
  readonly ClientSecret: string | undefined
}): string | undefined => (given.AgentId === undefined || given.ClientSecret === undefined ? mustBeSet : undefined)

function configured({ agentId, clientSecret }: FirstAdmin): Credential | undefined {
  if (agentId === undefined || clientSecret === undefined) return undefined
  return { agentId: agentId.toLowerCase(), clientSecret }
}

async function fromFile({
  registry,
  dataDirectory,
  agentId,
  mayMakeCredential,
}: BootstrapOptions): Promise<Credential> {
  if (!mayMakeCredential) throw new StartupError(mustBeSet)
  const path = bootstrapFile(dataDirectory)
  const found = parseCredential(await readPrivateFile(path))
  const wanted = agentId?.toLowerCase()
  // Left by a crash before the admin was stored: someone may have read it already, so it stays true.
  const isUnused = found !== undefined && registry.get(found.agentId) === undefined
  if (isUnused && (wanted ?? found.agentId) === found.agentId) return found
  return writeCredential(dataDirectory, wanted ?? randomUUID())
}

async function writeCredential(dataDirectory: string, agentId: string): Promise<Credential> {
  const made: Credential = { agentId, clientSecret: generateSecret() }
  await writePrivateFile(bootstrapFile(dataDirectory), `${JSON.stringify(made, null, 2)}\n`, true)
  return made
}

/**
 * Gives an admin a new secret, makes it active, and makes every token void. Takes the admin of Security:Bootstrap or of
 * bootstrap.json, else the oldest one that is not revoked. The secret is the configured one, else a new one in
 * bootstrap.json. Returns the id of the admin.
 *
 * @throws StartupError when there is no such admin
 */
export async function resetAdmin(options: ResetOptions): Promise<string> {
  const { store, secrets, clock, dataDirectory } = options
  const given = configured(options)
  if (given === undefined && !options.mayMakeCredential) throw new StartupError(mustBeSet)
  const admin = await findAdmin(options)
  const { clientSecret } = given ?? (await writeCredential(dataDirectory, admin.id))
  const secretHash = await secrets.hash(clientSecret)
  if (isRefusal(secretHash)) throw new StartupError(`The secret could not be hashed: ${secretHash.detail}`)
  const at = clock.now()
  const lifted = admin.status === 'Quarantined' ? { trustValue: probationTrust, trustAt: at } : {}
  const change = { status: 'Active', secretHash, weakSecret: false, ...lifted } as const
  const entry = { at, actor: 'gateway', action: 'admin.reset', subject: admin.id, requestId: null }
  await store.agents.reset(admin.id, change, { ...entry, details: { tokens: 'void' } })
  return admin.id
}

async function findAdmin({ store, dataDirectory, agentId }: ResetOptions): Promise<AgentRecord> {
  const admins = (await store.agents.all()).filter(
    ({ roles, status }) => roles.includes('admin') && status !== 'Revoked',
  )
  const named = agentId ?? parseCredential(await readPrivateFile(bootstrapFile(dataDirectory)))?.agentId
  const found = admins.find(({ id }) => id === named?.toLowerCase())
  const [oldest] = agentId === undefined ? admins : []
  const admin = found ?? oldest
  if (admin !== undefined) return admin
  throw new StartupError(
    admins.length === 0
      ? 'There is no admin, or all are revoked. Start the gateway: it creates one.'
      : 'Security:Bootstrap:AgentId must be the id of an admin that is not revoked.',
  )
}

/** The credential in the text of bootstrap.json; undefined when there is none. */
export function parseCredential(text: string | undefined): Credential | undefined {
  const value = text === undefined ? undefined : parseJson(text)
  if (!isObject(value)) return undefined
  const { agentId, clientSecret } = value
  if (typeof agentId !== 'string' || typeof clientSecret !== 'string') return undefined
  return uuid(agentId) === undefined && secretProblem(clientSecret) === undefined
    ? { agentId, clientSecret }
    : undefined
}
