/**
 * Settings that change while the gateway runs. Parts read them as properties of one object, which shows what is in force.
 * A part that keeps something made from them makes it again in `prepare`, where it may still fail, and uses it from
 * `commit` on. All commits run in one go, so nothing sees some of the new settings and some of the old ones.
 */
import { isDeepStrictEqual } from 'node:util'
import { type Config, schema } from './schema.ts'
import { isSetting, type SettingTree, settingsOf } from './setting.ts'

/** What SIGHUP reads again, settings or sections. Everything else needs a restart. */
const reloaded: readonly string[] = [
  'System:RateLimit',
  'System:ManagementRateLimit',
  'Hosts',
  'Upstreams',
  'Egress:DenyPrivateNetworks',
  'Egress:AllowHosts',
  'Egress:DenyHosts',
  'Egress:AllowCidrs',
  'Egress:DenyCidrs',
  'Risk',
  'Trust',
  'HumanInTheLoop:Threshold',
  'HumanInTheLoop:TimeoutSeconds',
  'HumanInTheLoop:WaitSeconds',
  'HumanInTheLoop:MaxPendingRequests',
  'HumanInTheLoop:MaxPendingPercentPerAgent',
  'HumanInTheLoop:FourEyes',
  'HumanInTheLoop:MaxStoredResponseBytes',
  'HumanInTheLoop:RetentionSeconds',
  'HumanInTheLoop:Webhooks',
  'HumanInTheLoop:Email',
  'Logging:Level',
  'Logging:Values',
  'Telemetry:Tracing:Ratio',
]

/** Whether SIGHUP reads a setting again. @param name `Logging:Level` */
export const isReloaded = (name: string): boolean =>
  reloaded.some(wanted => name === wanted || name.startsWith(`${wanted}:`))

/** Puts what was prepared in force. It must not fail. */
export type Commit = () => void

/** Makes what a part needs of other settings; throws, or rejects, when that cannot be used. */
export type PrepareSettings = (next: Config) => Commit | Promise<Commit>

export type LiveSettings = ReturnType<typeof createLiveSettings>

export function createLiveSettings(start: Config) {
  // A copy of the sections: the values in them are frozen.
  const config = copyOf(schema, start) as Config
  const parts: PrepareSettings[] = []
  return {
    /** Its properties are those in force. It is the same object as long as the gateway runs. */
    config,
    /** A part that takes part in changes, in the order of these calls. */
    onChange: (prepare: PrepareSettings): void => void parts.push(prepare),
    /** Prepares every part. Nothing has changed when it rejects, and until the result is called. */
    async prepare(next: Config): Promise<Commit> {
      const commits = await Promise.all(parts.map(async prepare => prepare(next)))
      return () => {
        for (const [path] of settingsOf(schema)) if (isReloaded(path.join(':'))) put(config, path, valueAt(next, path))
        for (const commit of commits) commit()
      }
    },
  }
}

export interface ConfigChange {
  /** The configuration in force, with the settings of the new one that SIGHUP reads again. */
  readonly config: Config
  /** Names of those that differ. */
  readonly changed: readonly string[]
  /** Names of the settings that differ from those of the start, and are not read again. */
  readonly needRestart: readonly string[]
}

/**
 * @param start the configuration of the start, as it was loaded
 * @param current the one in force
 */
export function changeOf(start: Config, current: Config, next: Config): ConfigChange {
  // A copy has the same members.
  const config = copyOf(schema, current) as Config
  const changed: string[] = []
  const needRestart: string[] = []
  for (const [path] of settingsOf(schema)) {
    const name = path.join(':')
    const value = valueAt(next, path)
    if (!isReloaded(name)) {
      if (!isDeepStrictEqual(value, valueAt(start, path))) needRestart.push(name)
    } else if (!isDeepStrictEqual(value, valueAt(current, path))) {
      changed.push(name)
      put(config, path, value)
    }
  }
  return { config, changed, needRestart }
}

type Section = Record<string, unknown>

function copyOf(tree: SettingTree, values: unknown): unknown {
  // A tree of the schema and its values have the same keys.
  const entries = Object.entries(values as Section).map(([key, value]) => {
    const node = tree[key]
    return [key, node === undefined || isSetting(node) ? value : copyOf(node, value)]
  })
  return Object.fromEntries(entries)
}

function sectionOf(config: Config, path: readonly string[]): Section {
  // A path of the schema leads to it.
  return path.slice(0, -1).reduce<Section>((section, key) => section[key] as Section, config as unknown as Section)
}

export const valueAt = (config: Config, path: readonly string[]): unknown => sectionOf(config, path)[path.at(-1) ?? '']

function put(config: Config, path: readonly string[], value: unknown): void {
  sectionOf(config, path)[path.at(-1) ?? ''] = value
}
