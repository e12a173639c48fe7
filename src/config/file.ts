import type { Document, Pair, YAMLMap } from 'yaml'
import { isAlias, isMap, isScalar, isSeq, LineCounter, parseDocument } from 'yaml'
import type { Findings } from './given.ts'
import { assemble, childOf, record, unknownKey } from './given.ts'
import type { Setting, SettingTree } from './setting.ts'
import { isSetting } from './setting.ts'
import { readTyped } from './value.ts'

export interface ConfigFile {
  /** As problems shall name it. */
  readonly path: string
  readonly text: string
}

/** Takes what a YAML file says: nested maps, keys in any letter case. */
export function readFile(schema: SettingTree, file: ConfigFile, findings: Findings): void {
  const lines = new LineCounter()
  const document = parseDocument(file.text, { lineCounter: lines, prettyErrors: false })
  const place = (offset: number): string => {
    const { line, col } = lines.linePos(offset)
    return `${file.path}:${line}:${col}`
  }
  for (const error of [...document.errors, ...document.warnings]) {
    // The text of the error may repeat what stands in the file, and that may be a secret.
    const what = error.code.toLowerCase().replaceAll('_', ' ')
    findings.problems.push({ place: place(error.pos[0]), message: `not valid YAML: ${what}` })
  }
  if (findings.problems.length > 0 || document.contents === null) return
  const walk: Walk = { document, place, findings }
  if (isMap(document.contents)) readTree(walk, schema, document.contents, [])
  else findings.problems.push({ place: place(0), message: 'must be a map of keys and values' })
}

interface Walk {
  readonly document: Document
  readonly place: (offset: number) => string
  readonly findings: Findings
}

function readTree(walk: Walk, tree: SettingTree, map: YAMLMap, path: readonly string[]): void {
  const seen = new Set<string>()
  for (const pair of map.items) {
    const key = isScalar(pair.key) ? String(pair.key.value) : '?'
    const child = childOf(tree, key)
    if (child === undefined) report(walk, pair, [...path, key], unknownKey(tree, key))
    else if (seen.has(child.name)) report(walk, pair, [...path, child.name], 'given twice')
    else readPair(walk, child.node, pair, [...path, child.name])
    if (child !== undefined) seen.add(child.name)
  }
}

function readPair(walk: Walk, node: Setting<unknown> | SettingTree, pair: Pair, path: readonly string[]): void {
  const value = isAlias(pair.value) ? pair.value.resolve(walk.document) : pair.value
  const empty = value === null || (isScalar(value) && value.value === null)
  if (value === undefined) report(walk, pair, path, 'refers to nothing; put text that begins with * in quotes')
  else if (isSetting(node)) {
    if (empty) report(walk, pair, path, 'has no value; give one or remove the key')
    else readSetting(walk, node, { pair, value }, path)
  } else if (isMap(value)) readTree(walk, node, value, path)
  // A section whose keys are all commented out has no value, and needs none.
  else if (!empty) report(walk, pair, path, 'must be a map of keys and values')
}

function readSetting(
  walk: Walk,
  setting: Setting<unknown>,
  { pair, value }: { readonly pair: Pair; readonly value: unknown },
  path: readonly string[],
): void {
  const { entry } = setting
  const reading =
    entry !== undefined && isSeq(value)
      ? { value: value.items.map((item, index) => readEntry(walk, entry, item, [...path, String(index)])) }
      : readTyped(setting, toPlain(walk, value))
  record(walk.findings, setting, { place: walk.place(offsetOf(pair)), name: path.join(':') }, reading)
}

/** One entry of a list of maps: its settings are the same as those of the next entry, so they are found apart. */
function readEntry(walk: Walk, tree: SettingTree, item: unknown, path: readonly string[]): unknown {
  const findings: Findings = { given: new Map(), problems: walk.findings.problems }
  if (isMap(item)) readTree({ ...walk, findings }, tree, item, path)
  else
    walk.findings.problems.push({ place: walk.place(startOf(item) ?? 0), message: `${path.join(':')}: must be a map` })
  return assemble(tree, findings.given)
}

function toPlain(walk: Walk, value: unknown): unknown {
  if (isScalar(value)) return value.value
  return isMap(value) || isSeq(value) ? value.toJS(walk.document) : undefined
}

const offsetOf = (pair: Pair): number => startOf(pair.key) ?? startOf(pair.value) ?? 0

function startOf(node: unknown): number | undefined {
  return isScalar(node) || isMap(node) || isSeq(node) ? node.range?.[0] : undefined
}

function report(walk: Walk, pair: Pair, path: readonly string[], message: string): void {
  walk.findings.problems.push({ place: walk.place(offsetOf(pair)), message: `${path.join(':')}: ${message}` })
}
