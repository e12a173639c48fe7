import { resolve } from 'node:path'
import { type HostAndPort, isAtHost, parseHostAndPort } from '../base/host-port.ts'
import { StartupError } from '../base/refusals.ts'
import type { Target } from '../base/target.ts'
import { type CredentialSetting, isForAgentToken } from '../config/credentials.ts'
import type { UpstreamSetting } from '../config/upstreams.ts'
import { readPrivateFile } from '../runtime/private-file.ts'
import type { AgentRecord } from '../storage/store.ts'
import { isSendable } from './obtain.ts'
import type { CredentialPlace } from './placement.ts'
import type { SecretPlaces } from './secrets.ts'

/** What of an agent says which credentials its requests get. */
export type CredentialAgent = Pick<AgentRecord, 'id' | 'policyName' | 'ownerId' | 'createdAt'>

/** An entry of `Upstreams`: what it adds, and to which requests. */
export interface CredentialEntry {
  readonly place: CredentialPlace
  /** The same for two entries with one place. */
  readonly placeKey: string
  readonly signer: CredentialSetting | undefined
  readonly isForToken: boolean
  /** That of the name. */
  readonly credential: CredentialSetting | undefined
  readonly setting: UpstreamSetting
  readonly host: HostAndPort
  /** Name in `Credentials`; undefined for a value that stands in `Upstreams` itself. */
  readonly name: string | undefined
  /** The name, or where the value without one comes from. */
  readonly source: string
  /** The value, for one without a name. */
  readonly value: string
  /** Stands before the value. */
  readonly prefix: string
}

interface EntryOptions extends SecretPlaces {
  readonly Credentials: readonly CredentialSetting[]
}

/** @throws StartupError that names the entry, never the value */
export async function entryOf(
  setting: UpstreamSetting,
  index: number,
  options: EntryOptions,
): Promise<CredentialEntry> {
  const { Host = '', Header, Query, Prefix, Credential, ValueFromEnv, ValueFromFile } = setting
  const credential = options.Credentials.find(({ Name }) => Name === Credential)
  if (Credential !== undefined && credential === undefined)
    throw new StartupError(`Upstreams[${index}]: the credential ${Credential} is new. Restart the gateway to use it.`)
  const { Type: type = 'Value' } = credential ?? {}
  const isBearer = type !== 'Value' && type !== 'Basic' && Query === undefined && /^authorization$/i.test(Header)
  return {
    ...{ setting, host: parseHostAndPort(Host), place: { header: Header, query: Query }, name: Credential },
    placeKey: Query === undefined ? Header.toLowerCase() : `?${Query}`,
    source: Credential ?? ValueFromEnv ?? ValueFromFile ?? '',
    ...{ credential, signer: type === 'Aws' ? credential : undefined },
    isForToken: isForAgentToken({ Type: type }),
    value: await readValue(setting, index, options),
    prefix: Prefix ?? (isBearer ? 'Bearer ' : ''),
  }
}

/** Empty for the values of `Credentials`. */
async function readValue(setting: UpstreamSetting, index: number, places: SecretPlaces): Promise<string> {
  const { ValueFromEnv, ValueFromFile, Credential } = setting
  if (Credential !== undefined) return ''
  const path = ValueFromFile === undefined ? undefined : resolve(places.baseDirectory, ValueFromFile)
  const from = path ?? `the environment variable ${ValueFromEnv}`
  const text = path === undefined ? places.env[ValueFromEnv ?? ''] : await readPrivateFile(path)
  if (text === undefined) throw new StartupError(`Upstreams[${index}]: ${from} does not exist.`)
  const value = text.replace(/\r?\n$/, '')
  if (isSendable(value)) return value
  throw new StartupError(`Upstreams[${index}]: ${from} must hold one line of printable ASCII characters.`)
}

export function applies(
  { setting, host }: CredentialEntry,
  { target, agent }: { readonly target: Target; readonly agent: CredentialAgent },
): boolean {
  const [{ AllowHttp, Paths }, { origin }] = [setting, target]
  if (origin.scheme === 'http' && !AllowHttp) return false
  return isFor(setting, agent) && isAtHost(host, origin) && (Paths.length === 0 || isBelow(target, Paths))
}

/** Whether requests of an agent may get it. */
export function isFor({ Agent, Policy }: UpstreamSetting, { id, policyName }: CredentialAgent): boolean {
  if (Agent !== undefined && Agent.toLowerCase() !== id) return false
  return Policy === undefined || Policy === policyName
}

/** Whether the path is below one of these, in each way in which servers read it. */
function isBelow({ path, readings = [path] }: Target, prefixes: readonly string[]): boolean {
  return readings.every(reading => prefixes.some(prefix => startsWithPath(reading, prefix)))
}

/** `/v1` covers `/v1` and `/v1/x`, not `/v10`. */
function startsWithPath(path: string, prefix: string): boolean {
  if (!path.startsWith(prefix)) return false
  return prefix.endsWith('/') || path.length === prefix.length || path[prefix.length] === '/'
}
