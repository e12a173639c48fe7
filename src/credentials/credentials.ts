import { resolve } from 'node:path'
import { type HostAndPort, isAtHost, parseHostAndPort } from '../base/host-port.ts'
import type { Origin } from '../base/origin.ts'
import { type Refusal, refuse, StartupError } from '../base/refusals.ts'
import type { Environment } from '../config/environment.ts'
import type { Config } from '../config/schema.ts'
import { isTokenField } from '../http/headers.ts'
import { fieldName } from '../http/names.ts'
import { readPrivateFile } from '../runtime/private-file.ts'
import type { AgentRecord } from '../storage/store.ts'

/** A request that is about to be sent, as far as it says which credentials it gets. */
export interface CredentialRequest {
  readonly origin: Origin
  readonly agent: Pick<AgentRecord, 'id' | 'policyName'>
  /** Header fields of the agent, flat: name, value, name, value. */
  readonly rawHeaders: readonly string[]
  /** Names among them that are not sent upstream anyway, as `foldName` writes them. */
  readonly tokenNames: readonly string[]
}

/** Header fields that the gateway adds for some upstreams, so that agents need not hold their keys. */
export interface Credentials {
  /** The fields to add, or a refusal when the agent sends one of them itself. */
  fieldsFor(request: CredentialRequest): readonly string[] | Refusal
}

export interface CredentialSources {
  readonly env: Environment
  /** Base of relative paths. */
  readonly baseDirectory: string
}

type CredentialSetting = Config['Upstreams'][number]

interface CredentialEntry {
  readonly setting: CredentialSetting
  /** Lower case. */
  readonly header: string
  readonly host: HostAndPort
}

/** RFC 9110 section 5.5, without what is obsolete. */
const fieldValue = /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/

/**
 * Reads the values of the configured entries; undefined when there is none: then requests need no work.
 *
 * @throws StartupError that names the entry, never the value
 */
export async function openCredentials(
  settings: readonly CredentialSetting[],
  sources: CredentialSources,
): Promise<Credentials | undefined> {
  if (settings.length === 0) return undefined
  const entries = settings.map(entryOf)
  const values = await Promise.all(settings.map((setting, index) => readValue(setting, index, sources)))

  return {
    fieldsFor(request) {
      const fields: string[] = []
      const named = new Set<string>()
      for (const [index, entry] of entries.entries()) {
        // Of several entries for one field the first counts.
        if (named.has(entry.header) || !applies(entry, request)) continue
        named.add(entry.header)
        const { Override, Header } = entry.setting
        if (Override === 'Replace' || !sendsItself(entry.header, request)) fields.push(Header, values[index]!)
        else if (Override === 'Refuse') return conflict(entry)
      }
      return fields
    },
  }
}

function entryOf(setting: CredentialSetting): CredentialEntry {
  return { setting, header: setting.Header.toLowerCase(), host: parseHostAndPort(setting.Host ?? '') }
}

/** The settings that say where a value comes from. Each entry has one of them (config/check.ts). */
type SourceSetting = Extract<keyof CredentialSetting, `ValueFrom${string}`>

interface SourceReading {
  /** For error messages. */
  readonly from: string
  /** Undefined when it does not exist. */
  readonly text: string | undefined
}

/** How the value of each setting is read; `name` is the value of the setting. */
const credentialSources: {
  readonly [S in SourceSetting]: (name: string, sources: CredentialSources) => SourceReading | Promise<SourceReading>
} = {
  ValueFromEnv: (name, { env }) => ({ from: `the environment variable ${name}`, text: env[name] }),
  async ValueFromFile(name, { baseDirectory }) {
    const path = resolve(baseDirectory, name)
    return { from: path, text: await readPrivateFile(path) }
  },
}

async function readValue(setting: CredentialSetting, index: number, sources: CredentialSources): Promise<string> {
  const { Prefix = '' } = setting
  const { from, text } = await readSource(setting, sources)
  if (text === undefined) throw new StartupError(`Upstreams[${index}]: ${from} does not exist.`)
  const value = Prefix + text.replace(/\r?\n$/, '')
  if (value.length > Prefix.length && fieldValue.test(value)) return value
  throw new StartupError(`Upstreams[${index}]: ${from} must hold one line of printable ASCII characters.`)
}

function readSource(setting: CredentialSetting, sources: CredentialSources): SourceReading | Promise<SourceReading> {
  // The names of the table.
  for (const source of Object.keys(credentialSources) as SourceSetting[]) {
    const name = setting[source]
    if (name !== undefined) return credentialSources[source](name, sources)
  }
  throw new Error('cannot happen: a credential without a source')
}

function applies({ setting, host }: CredentialEntry, { origin, agent }: CredentialRequest): boolean {
  if (origin.scheme === 'http' && !setting.AllowHttp) return false
  if (setting.Agent !== undefined && setting.Agent.toLowerCase() !== agent.id) return false
  if (setting.Policy !== undefined && setting.Policy !== agent.policyName) return false
  return isAtHost(host, origin)
}

/** Whether the agent sends the field, or one that an upstream may take for it. */
function sendsItself(header: string, { rawHeaders, tokenNames }: CredentialRequest): boolean {
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const { folded } = fieldName(rawHeaders[i]!)
    if (folded === fieldName(header).folded && !tokenNames.includes(folded)) return true
  }
  return false
}

/** The fields of a request with its credentials, which replace fields of the same name. */
export function withCredentials(fields: readonly string[], credentials: readonly string[]): string[] {
  const kept: string[] = []
  for (let i = 0; i < fields.length; i += 2) {
    const name = fields[i]!
    const isReplaced = credentials.some((credential, at) => at % 2 === 0 && isTokenField(name, credential))
    if (!isReplaced) kept.push(name, fields[i + 1]!)
  }
  return kept.concat(credentials)
}

function conflict({ setting }: CredentialEntry): Refusal {
  return refuse('credential_conflict', `The gateway sets ${setting.Header} for this upstream. Leave it out.`)
}
