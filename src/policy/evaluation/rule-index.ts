import type { Facts } from '../request/facts.ts'
import { createProgram, type Program } from './program.ts'
import type { CompiledRule } from './rule.ts'
import { keysOf, maxPathDepth } from './rule-keys.ts'

/** Places of rules, ascending; with a program when they are many. */
export interface Source {
  readonly places: readonly number[]
  readonly program: Program | undefined
}

/** Rules of one host, by the beginning of the path. */
interface Table {
  readonly any: Source | undefined
  readonly byPath: ReadonlyMap<string, Source>
}

/** When which form of a list pays. */
export interface IndexSizes {
  /** Up to this many rules of one host are not indexed by path: a look-up of the path costs as much as a few rules. */
  readonly fewRules: number
  /** Longer lists are run as a program: the closures of more rules do not stay in the processor's cache. */
  readonly manyRules: number
}

const measuredSizes: IndexSizes = { fewRules: 12, manyRules: 200 }

/**
 * Finds the rules that can match a request by its host and the beginning of its path, so that the time of a decision
 * does not grow with the number of rules. Immutable once built.
 */
export class RuleIndex {
  readonly #anyHost: Table
  readonly #byHost: ReadonlyMap<string, Table>
  readonly #bySuffix: ReadonlyMap<string, Table>

  constructor(tables: { anyHost: Table; byHost: ReadonlyMap<string, Table>; bySuffix: ReadonlyMap<string, Table> }) {
    this.#anyHost = tables.anyHost
    this.#byHost = tables.byHost
    this.#bySuffix = tables.bySuffix
  }

  /** Fills `sources` with the lists that can hold matching rules; returns how many. */
  collect(facts: Facts, sources: Source[]): number {
    const { host } = facts.request
    let count = collectTable(this.#anyHost, facts, { sources, count: 0 })
    const table = this.#byHost.get(host)
    if (table !== undefined) count = collectTable(table, facts, { sources, count })
    if (this.#bySuffix.size === 0) return count
    for (let dot = host.indexOf('.'); dot > 0; dot = host.indexOf('.', dot + 1)) {
      const below = this.#bySuffix.get(host.slice(dot))
      if (below !== undefined) count = collectTable(below, facts, { sources, count })
    }
    return count
  }
}

interface Collected {
  readonly sources: Source[]
  readonly count: number
}

function collectTable(table: Table, facts: Facts, { sources, count }: Collected): number {
  if (table.any !== undefined) sources[count++] = table.any
  if (table.byPath.size === 0) return count
  const { path, readings } = facts.request
  if (readings === undefined) return collectPath(table, path, { sources, count })
  // A rule that holds for one reading only is unreadable, and must be asked. A list that is found twice does no harm.
  for (const reading of readings) count = collectPath(table, reading, { sources, count })
  return count
}

function collectPath(table: Table, path: string, { sources, count }: Collected): number {
  let end = 0
  for (let depth = 0; depth < maxPathDepth; depth++) {
    end = path.indexOf('/', end + 1)
    const found = table.byPath.get(end < 0 ? path : path.slice(0, end))
    if (found !== undefined) sources[count++] = found
    if (end < 0) break
  }
  return count
}

/** Rules as they are added, before it is known how many share a table. */
interface Draft {
  readonly any: number[]
  readonly byPath: Map<string, number[]>
}

function createDraft(): Draft {
  return { any: [], byPath: new Map() }
}

/** Builds an index, rule by rule in the order of evaluation. */
export class IndexBuilder {
  readonly #anyHost = createDraft()
  readonly #byHost = new Map<string, Draft>()
  readonly #bySuffix = new Map<string, Draft>()
  readonly #sizes: IndexSizes

  constructor(sizes: IndexSizes = measuredSizes) {
    this.#sizes = sizes
  }

  add(compiled: CompiledRule, place: number): void {
    const { hosts, paths } = keysOf(compiled.rule.conditions)
    if (hosts === undefined) put(this.#anyHost, paths, place)
    for (const host of new Set(hosts)) {
      const drafts = host.startsWith('.') ? this.#bySuffix : this.#byHost
      put(entryOf(drafts, host, createDraft), paths, place)
    }
  }

  finish(rules: readonly CompiledRule[]): RuleIndex {
    const table = (draft: Draft) => this.#finishTable(draft, rules)
    return new RuleIndex({
      anyHost: table(this.#anyHost),
      byHost: mapValues(this.#byHost, table),
      bySuffix: mapValues(this.#bySuffix, table),
    })
  }

  #finishTable({ any, byPath }: Draft, rules: readonly CompiledRule[]): Table {
    const source = (places: readonly number[]) => this.#finishSource(places, rules)
    const all = new Set([...any, ...[...byPath.values()].flat()])
    if (all.size <= this.#sizes.fewRules) return { any: source([...all].sort((a, b) => a - b)), byPath: new Map() }
    return { any: any.length === 0 ? undefined : source(any), byPath: mapValues(byPath, source) }
  }

  #finishSource(places: readonly number[], rules: readonly CompiledRule[]): Source {
    const many = places.length > this.#sizes.manyRules
    return { places, program: many ? createProgram(places.map(place => rules[place]!)) : undefined }
  }
}

function put(draft: Draft, paths: readonly string[] | undefined, place: number): void {
  if (paths === undefined) draft.any.push(place)
  for (const path of new Set(paths)) entryOf(draft.byPath, path, () => []).push(place)
}

function entryOf<T>(map: Map<string, T>, key: string, create: () => T): T {
  const known = map.get(key)
  if (known !== undefined) return known
  const created = create()
  map.set(key, created)
  return created
}

function mapValues<A, B>(map: ReadonlyMap<string, A>, change: (value: A) => B): ReadonlyMap<string, B> {
  return new Map([...map].map(([key, value]) => [key, change(value)]))
}
