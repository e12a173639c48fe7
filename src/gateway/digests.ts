/** Hashes of the settings that should be the same in all gateways, so that differences are found without showing values. */
import { hash } from 'node:crypto'
import { canonicalJson } from '../base/json.ts'
import { valueAt } from '../config/live.ts'
import { type Config, schema } from '../config/schema.ts'
import { type Setting, type SettingTree, settingsOf } from '../config/setting.ts'
import type { Digests } from '../fleet/peers.ts'
import type { PolicyEntry } from '../policies/entry.ts'

/** Settings of one machine, and settings with a separate digest. */
const ownSettings =
  /^(?:System:Server|Storage|Fleet|Logging|Telemetry|Security:Bootstrap|Egress:SelfUrls|Policies|ForwardProxy:(?:Host|Port|UnixPath|Ca))(?::|$)|:Directory$/

/** One for each group of settings. Secrets are left out: those that matter have fingerprints. */
export function digestSettings(config: Config): Digests {
  const groups = new Map<string, Record<string, unknown>>()
  for (const [path, setting] of settingsOf(schema)) {
    const name = path.join(':')
    if (ownSettings.test(name) || setting.secret === true) continue
    const value = valueAt(config, path)
    const group = `settings under ${path[0]}`
    const values = groups.get(group) ?? {}
    values[name] = setting.entry === undefined ? value : withoutSecrets(value, setting.entry)
    groups.set(group, values)
  }
  return Object.fromEntries([...groups].map(([group, values]) => [group, digest(canonicalJson(values))]))
}

/** Digests of the policies in files and in gateway.yaml. */
export function digestPolicies(list: readonly PolicyEntry[]): Digests {
  const fromFiles = list.filter(({ source }) => source !== 'api')
  const versions = fromFiles.map(({ document, compiled }) => `${document.name} ${compiled.version}`)
  return { 'policy files': digest(versions.join('\n')) }
}

/** @param fingerprint of the certificate authority; undefined without a forward proxy */
export const digestAuthority = (fingerprint: string | undefined): Digests =>
  fingerprint === undefined ? {} : { 'certificate authorities': digest(fingerprint) }

function withoutSecrets(entries: unknown, tree: SettingTree): unknown {
  // Where the file with a secret lies is of one machine.
  const left = ({ secret, fills }: Setting<unknown>) => secret === true || fills !== undefined
  const secrets = new Set([...settingsOf(tree)].flatMap(([path, setting]) => (left(setting) ? path : [])))
  // Entries of such a setting are maps.
  return (entries as readonly object[]).map(entry =>
    Object.fromEntries(Object.entries(entry).filter(([key]) => !secrets.has(key))),
  )
}

const digest = (text: string): string => hash('sha256', text, 'base64url').slice(0, 16)
