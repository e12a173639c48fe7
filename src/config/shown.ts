/** Settings as people see them: values without secrets, and where they come from. */
import { isObject } from '../base/records.ts'
import { formatSetting } from './duration.ts'
import type { ConfigFindings } from './given.ts'
import { valueAt } from './live.ts'
import { type Config, schema } from './schema.ts'
import { type Setting, type SettingTree, settingsOf } from './setting.ts'

export interface ShownSetting {
  /** `System:Server:Http:Port` */
  readonly name: string
  /** As it would stand in gateway.yaml; `***` for a secret, null when there is none. */
  readonly value: unknown
  /** `gateway.yaml:8:5`, `env NAME` or `default`. */
  readonly from: string
}

const hidden = '***'

/** Every setting in the order of the schema. */
export function showSettings(config: Config, given: ConfigFindings['given']): readonly ShownSetting[] {
  return [...settingsOf(schema)].map(([path, setting]) => {
    return {
      name: path.join(':'),
      value: shownValue(setting, valueAt(config, path)),
      from: given.get(setting)?.place ?? 'default',
    }
  })
}

function shownValue(setting: Setting<unknown>, value: unknown): unknown {
  if (value === undefined) return null
  if (setting.secret === true) return Array.isArray(value) ? value.map(() => hidden) : hidden
  if (setting.kind === 'timespan') return formatSetting(Number(value))
  const { entry } = setting
  return entry !== undefined && Array.isArray(value) ? value.map(item => shownEntry(entry, item)) : value
}

/** The keys that have a value. */
function shownEntry(tree: SettingTree, item: unknown): unknown {
  if (!isObject(item)) return item
  const entries = [...settingsOf(tree)].flatMap(([path, setting]) => {
    const value = path.reduce<unknown>((inner, key) => (isObject(inner) ? inner[key] : undefined), item)
    return value === undefined ? [] : [[path.join(':'), shownValue(setting, value)] as const]
  })
  return Object.fromEntries(entries)
}
