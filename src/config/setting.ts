/**
 * The kinds of settings. A setting is declared once, in schema.ts, with its type, unit, default and meaning;
 * the loader, `agent-gateway check`, gateway.yaml and docs/settings.md are all held against that one place.
 */
export interface Setting<T> {
  readonly kind: 'integer' | 'number' | 'boolean' | 'text' | 'choice' | 'list' | 'timespan' | 'objects'
  readonly default: T
  /** One sentence for gateway.yaml and docs/settings.md. Says the unit when the key does not. */
  readonly meaning: string
  readonly min?: number
  readonly max?: number
  /** kind integer: the value of the word `auto`. */
  readonly auto?: number
  readonly choices?: readonly string[]
  /** Printed as *** wherever settings are shown. */
  readonly secret?: boolean
  /** Further rule for the text, or for each text of a list. */
  readonly format?: TextFormat
  /** The value is the path of a file, whose text is the value of this other setting of the same entry. */
  readonly fills?: string
  /** kind objects: the settings of one entry; absent when another part of the program checks the entries. */
  readonly entry?: SettingTree
}

/** Says what is wrong with the text ("must be ..."), never repeating it; undefined when nothing is. */
export type TextFormat = (text: string) => string | undefined

/** What is wrong with the entries of a list, each named by its place; undefined when nothing is. */
export function entriesProblem<E>(
  entries: readonly E[],
  problemOf: (entry: E, before: readonly E[]) => string | undefined,
): string | undefined {
  const problems = entries.flatMap((entry, index) => {
    const problem = problemOf(entry, entries.slice(0, index))
    return problem === undefined ? [] : `entry ${index}: ${problem}`
  })
  return problems.join('; ') || undefined
}

export interface SettingTree {
  readonly [key: string]: Setting<unknown> | SettingTree
}

/** The plain values of a tree of settings. */
export type SettingValues<S> = S extends Setting<infer T> ? T : { readonly [K in keyof S]: SettingValues<S[K]> }

export function isSetting(node: Setting<unknown> | SettingTree): node is Setting<unknown> {
  return typeof node['kind'] === 'string'
}

/** Every setting of a tree with the names of the keys that lead to it, in the order of the schema. */
export function* settingsOf(
  tree: SettingTree,
  path: readonly string[] = [],
): Generator<readonly [readonly string[], Setting<unknown>]> {
  for (const [key, node] of Object.entries(tree)) {
    if (isSetting(node)) yield [[...path, key], node]
    else yield* settingsOf(node, [...path, key])
  }
}

interface NumberRange {
  readonly min?: number
  readonly max?: number
  readonly auto?: number
}

export const integer = (value: number, meaning: string, range: NumberRange = {}): Setting<number> => ({
  kind: 'integer',
  default: value,
  meaning,
  min: range.min ?? 0,
  max: range.max ?? Number.MAX_SAFE_INTEGER,
  ...(range.auto === undefined ? {} : { auto: range.auto }),
})

export const number = (value: number, meaning: string, range: NumberRange = {}): Setting<number> => ({
  kind: 'number',
  default: value,
  meaning,
  ...range,
})

/** Absent unless configured. */
export const optionalNumber = (meaning: string, range: NumberRange = {}): Setting<number | undefined> => ({
  kind: 'number',
  default: undefined,
  meaning,
  ...range,
})

export const boolean = (value: boolean, meaning: string): Setting<boolean> => ({
  kind: 'boolean',
  default: value,
  meaning,
})

/** Text that is never empty. */
export const text = (value: string, meaning: string, format?: TextFormat): Setting<string> => ({
  kind: 'text',
  default: value,
  meaning,
  ...(format && { format }),
})

/** Text that is absent unless configured. */
export const optional = (meaning: string, format?: TextFormat): Setting<string | undefined> => ({
  kind: 'text',
  default: undefined,
  meaning,
  ...(format && { format }),
})

/** Absent unless configured, and never shown. */
export const secret = (meaning: string, format?: TextFormat): Setting<string | undefined> => ({
  ...optional(meaning, format),
  secret: true,
})

/** A secret of an entry in a file of its own: variables and their NAME__FILE cannot set entries. */
export const secretFile = (key: string): Setting<string | undefined> => ({
  ...optional(`File with ${key}, relative to gateway.yaml; not readable by others.`),
  fills: key,
})

export const choice = <const C extends readonly string[]>(
  choices: C,
  value: C[number],
  meaning: string,
): Setting<C[number]> => ({ kind: 'choice', default: value, choices, meaning })

/** A YAML list, or comma-separated text in an environment variable. */
export const list = (
  meaning: string,
  format?: TextFormat,
  value: readonly string[] = [],
): Setting<readonly string[]> => ({
  kind: 'list',
  default: value,
  meaning,
  ...(format && { format }),
})

export const secretList = (meaning: string, format?: TextFormat): Setting<readonly string[]> => ({
  ...list(meaning, format),
  secret: true,
})

/** `hh:mm:ss` or `d.hh:mm:ss`, kept as milliseconds. `min` and `max` are milliseconds too. */
export const timespan = (value: number, meaning: string, range: NumberRange = {}): Setting<number> => ({
  kind: 'timespan',
  default: value,
  meaning,
  ...range,
})

/** A list of maps with the same keys. */
export const objects = <const S extends SettingTree>(
  entry: S,
  meaning: string,
): Setting<readonly SettingValues<S>[]> => ({
  kind: 'objects',
  default: [],
  meaning,
  entry,
})

/** A list of maps that another part of the program checks (policies). */
export const documents = (meaning: string): Setting<readonly unknown[]> => ({ kind: 'objects', default: [], meaning })
