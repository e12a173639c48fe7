import { dirname, resolve } from 'node:path'
import { isObject } from '../base/records.ts'
import { readValueFile } from './file-variable.ts'
import { assemble, type ConfigFindings, childOf, record, unknownKey } from './given.ts'
import { isSetting, type Setting, type SettingTree } from './setting.ts'
import { readFromText, readTyped } from './value.ts'
import { parseYaml } from './yaml.ts'

export interface ConfigFile {
  /** Path of the file, as problems name it. */
  readonly path: string
  readonly text: string
}

/** Takes what a YAML file says: nested maps, keys in any letter case. */
export function readFile(schema: SettingTree, file: ConfigFile, findings: ConfigFindings): void {
  const yaml = parseYaml(file.text)
  if ('problems' in yaml) {
    for (const { line, column, kind } of yaml.problems) {
      // Only the kind is reported: the message may repeat the content of the file, which may be a secret.
      const hint = kind === 'duplicate key' ? '; put what is below it under the same key that stands above' : ''
      findings.problems.push({ place: `${file.path}:${line}:${column}`, message: `must be valid YAML: ${kind}${hint}` })
    }
    return
  }
  const place = (path: readonly string[]): string => {
    const { line, column } = yaml.locate(path)
    return `${file.path}:${line}:${column}`
  }
  if (isObject(yaml.value))
    readTree({ place, findings, directory: dirname(resolve(file.path)) }, schema, yaml.value, { keys: [], name: '' })
  else if (yaml.value !== null)
    findings.problems.push({ place: place([]), message: 'must be a map of keys and values' })
}

interface ConfigWalk {
  readonly place: (path: readonly string[]) => string
  readonly findings: ConfigFindings
  /** Base of relative paths. */
  readonly directory: string
}

/** A place in the file: its keys as the file spells them, and its name as the schema does. */
interface Spot {
  readonly keys: readonly string[]
  readonly name: string
}

const below = (spot: Spot, key: string, name: string): Spot => ({
  keys: [...spot.keys, key],
  name: spot.name === '' ? name : `${spot.name}:${name}`,
})

function readTree(walk: ConfigWalk, tree: SettingTree, map: Readonly<Record<string, unknown>>, above: Spot): void {
  const names = new Set<string>()
  for (const [key, value] of Object.entries(map)) {
    const child = childOf(tree, key)
    const spot = below(above, key, child?.name ?? key)
    if (child === undefined) report(walk, spot, unknownKey(tree, spot.keys))
    else if (names.has(child.name)) report(walk, spot, 'must be given once')
    else readNode(walk, child.node, value, spot)
    if (child !== undefined) names.add(child.name)
  }
}

function readNode(walk: ConfigWalk, node: Setting<unknown> | SettingTree, value: unknown, spot: Spot): void {
  if (isSetting(node)) {
    if (value === null) report(walk, spot, 'must have a value; give one or remove the key')
    else readSetting(walk, node, value, spot)
  } else if (isObject(value)) readTree(walk, node, value, spot)
  // A section whose keys are all commented out has no value, and needs none.
  else if (value !== null) report(walk, spot, 'must be a map of keys and values')
}

function readSetting(walk: ConfigWalk, setting: Setting<unknown>, value: unknown, spot: Spot): void {
  const { entry } = setting
  const reading =
    entry !== undefined && Array.isArray(value)
      ? { value: value.map((item, index) => readEntry(walk, entry, item, below(spot, String(index), String(index)))) }
      : readTyped(setting, value)
  record(walk.findings, setting, { place: walk.place(spot.keys), name: spot.name }, reading)
}

/** One entry of a list of maps: its settings are the same as those of the next entry, so they are found apart. */
function readEntry(walk: ConfigWalk, tree: SettingTree, item: unknown, spot: Spot): unknown {
  const findings: ConfigFindings = { given: new Map(), problems: walk.findings.problems }
  if (isObject(item)) readTree({ ...walk, findings }, tree, item, spot)
  else report(walk, spot, 'must be a map of keys and values')
  for (const [key, node] of Object.entries(tree)) {
    if (isSetting(node) && node.fills !== undefined)
      readFilled({ ...walk, findings }, tree, node, below(spot, key, key))
  }
  return assemble(tree, findings.given)
}

/** Takes the value of the setting that the file of another one holds. */
function readFilled(walk: ConfigWalk, tree: SettingTree, file: Setting<unknown>, spot: Spot): void {
  const { given } = walk.findings
  const path = given.get(file)
  const filled = tree[file.fills ?? '']
  if (typeof path?.value !== 'string' || filled === undefined || !isSetting(filled)) return
  if (given.has(filled)) {
    report(walk, spot, `must not be set together with ${file.fills}`)
    return
  }
  const read = readValueFile(resolve(walk.directory, path.value), true)
  const reading = 'problem' in read ? read : readFromText(filled, read.text)
  record(walk.findings, filled, { place: path.place, name: spot.name }, reading)
}

function report(walk: ConfigWalk, spot: Spot, message: string): void {
  walk.findings.problems.push({ place: walk.place(spot.keys), message: `${spot.name}: ${message}` })
}
