import { didYouMean } from '../base/nearest.ts'
import { readValueFile } from './file-variable.ts'
import { type Child, type ConfigFindings, type ConfigProblem, childOf, record, unknownKey } from './given.ts'
import { isSetting, type Setting, type SettingTree, settingsOf } from './setting.ts'
import { type ParsedValue, readFromText } from './value.ts'

export type Environment = Readonly<Record<string, string | undefined>>

/**
 * Takes the variables that name a setting: the keys on the way to it, in any letter case, joined by `__`
 * (spec.md 5.6). With `__FILE` behind them the value is in a file. Only names that begin with a key of the top level are looked at, and none with an empty part.
 */
export function readEnvironment(schema: SettingTree, env: Environment, findings: ConfigFindings): void {
  const names = new Map<Setting<unknown>, string>()
  for (const [name, text] of Object.entries(env)) {
    const keys = name.split('__')
    if (text === undefined || keys.length < 2 || keys.includes('') || !childOf(schema, keys[0]!)) continue
    const place = `env ${name}`
    const target = findValue(schema, keys)
    if ('problem' in target) {
      findings.problems.push({ place, message: target.problem })
      continue
    }
    const other = names.get(target.setting)
    if (other !== undefined)
      findings.problems.push({ place, message: `must be set once: the same setting as ${other}` })
    names.set(target.setting, name)
    const reading = target.inFile ? readFromFile(target.setting, text) : readFromText(target.setting, text)
    record(findings, target.setting, { place, name: '' }, reading)
  }
}

function readFromFile(setting: Setting<unknown>, path: string): ParsedValue {
  const read = readValueFile(path, setting.secret === true)
  if ('problem' in read) return read
  // Items of a list may have a line each.
  return readFromText(setting, setting.kind === 'list' ? read.text.replaceAll('\n', ',') : read.text)
}

type FoundValue = FoundSetting & { readonly inFile: boolean }

/** The setting that a variable names, whose last key may be FILE. */
function findValue(schema: SettingTree, keys: readonly string[]): FoundValue | { readonly problem: string } {
  const found = find(schema, keys)
  if ('setting' in found) return { ...found, inFile: false }
  const inFile = keys.at(-1)?.toUpperCase() === 'FILE' ? find(schema, keys.slice(0, -1)) : found
  return 'setting' in inFile ? { ...inFile, inFile: true } : found
}

/** Variables that are not read, but whose names look like settings: `SYSTEM_SERVER_HTTP_PORT`, `SYSTM__SERVER__HTTP__PORT`. */
export function misnamedVariables(schema: SettingTree, env: Environment): readonly ConfigProblem[] {
  const bare = (name: string) => name.replaceAll(/[-_:.]/g, '').toLowerCase()
  const names = new Map([...settingsOf(schema)].map(([path]) => [bare(path.join('')), path]))
  return Object.keys(env).flatMap(name => {
    const [first = '', ...rest] = name.split('__')
    if (rest.length > 0 && childOf(schema, first) !== undefined) return []
    const similar = Object.keys(schema).find(
      key => didYouMean(first, [key]) !== '' && 'setting' in find(schema, [key, ...rest]),
    )
    const path = /[-_:.]/.test(name) ? (names.get(bare(name)) ?? (similar === undefined ? [] : [similar, ...rest])) : []
    if (path.length < 2) return []
    const right = path.join('__').replaceAll('-', '_').toUpperCase()
    return [{ place: `env ${name}`, message: `is not read: the name of the setting is ${right}` }]
  })
}

interface FoundSetting {
  readonly setting: Setting<unknown>
}

function find(schema: SettingTree, keys: readonly string[]): FoundSetting | { readonly problem: string } {
  let node: Setting<unknown> | SettingTree = schema
  for (const [index, key] of keys.entries()) {
    if (isSetting(node)) return { problem: 'unknown key' }
    // A shell can set no variable with a dash in its name.
    const child: Child | undefined = childOf(node, key) ?? childOf(node, key.replaceAll('_', '-'))
    if (child === undefined) return { problem: unknownKey(node, keys.slice(0, index + 1)) }
    node = child.node
  }
  return isSetting(node) ? { setting: node } : { problem: 'must be a setting, not a section' }
}
