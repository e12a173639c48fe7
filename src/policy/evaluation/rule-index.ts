import type { Facts } from '../request/facts.ts'
import type { CompiledRule } from './rule.ts'
import { keysOf, maxPathDepth } from './rule-keys.ts'

/** Places of rules in the order of evaluation, ascending. */
type RuleNumbers = readonly number[]

/** Rules of one host: those for any path, and those by the beginning of the path. */
interface PathTable {
  readonly any: RuleNumbers
  readonly byPath: ReadonlyMap<string, RuleNumbers>
}

/** Up to this many rules are not indexed: a look-up costs as much as asking a few rules. */
const few = 12

/**
 * Finds the rules that can match a request by its host and the beginning of its path, so that the time of a decision
 * does not grow with the number of rules. Immutable once built.
 */
export class RuleIndex {
  readonly #anyHost: PathTable
  readonly #byHost: ReadonlyMap<string, PathTable>
  readonly #bySuffix: ReadonlyMap<string, PathTable>

  constructor(tables: {
    anyHost: PathTable
    byHost: ReadonlyMap<string, PathTable>
    bySuffix: ReadonlyMap<string, PathTable>
  }) {
    this.#anyHost = tables.anyHost
    this.#byHost = tables.byHost
    this.#bySuffix = tables.bySuffix
  }

  /** Fills `lists` with the lists that can hold matching rules; returns how many. A list may be there twice. */
  collect(facts: Facts, lists: RuleNumbers[]): number {
    const { host } = facts.request
    let count = collectTable(this.#anyHost, facts, { lists, count: 0 })
    const table = this.#byHost.get(host)
    if (table !== undefined) count = collectTable(table, facts, { lists, count })
    if (this.#bySuffix.size === 0) return count
    for (let dot = host.indexOf('.'); dot > 0; dot = host.indexOf('.', dot + 1)) {
      const below = this.#bySuffix.get(host.slice(dot))
      if (below !== undefined) count = collectTable(below, facts, { lists, count })
    }
    return count
  }
}

interface Collected {
  readonly lists: RuleNumbers[]
  readonly count: number
}

function collectTable(table: PathTable, facts: Facts, { lists, count }: Collected): number {
  if (table.any.length > 0) lists[count++] = table.any
  if (table.byPath.size === 0) return count
  const { path, readings } = facts.request
  if (readings === undefined) return collectPath(table, path, { lists, count })
  // A rule that holds for one reading only is unreadable, and must be asked.
  for (const reading of readings) count = collectPath(table, reading, { lists, count })
  return count
}

function collectPath(table: PathTable, path: string, { lists, count }: Collected): number {
  let end = 0
  for (let depth = 0; depth < maxPathDepth; depth++) {
    end = path.indexOf('/', end + 1)
    const found = table.byPath.get(end < 0 ? path : path.slice(0, end))
    if (found !== undefined) lists[count++] = found
    if (end < 0) break
  }
  return count
}

/** A table that is being filled. */
class IndexDraft {
  readonly all: number[] = []
  readonly any: number[] = []
  readonly byPath = new Map<string, number[]>()

  add(paths: readonly string[] | undefined, place: number): void {
    this.all.push(place)
    if (paths === undefined) this.any.push(place)
    for (const path of new Set(paths)) getOrAdd(this.byPath, path, () => []).push(place)
  }

  finish(fewest: number): PathTable {
    return this.all.length <= fewest ? { any: this.all, byPath: new Map() } : this
  }
}

/** Builds an index, rule by rule in the order of evaluation. */
export class IndexBuilder {
  readonly #all = new IndexDraft()
  readonly #anyHost = new IndexDraft()
  readonly #byHost = new Map<string, IndexDraft>()
  readonly #bySuffix = new Map<string, IndexDraft>()

  add(compiled: CompiledRule, place: number): void {
    const { hosts, paths } = keysOf(compiled.rule.conditions)
    this.#all.add(undefined, place)
    if (hosts === undefined) this.#anyHost.add(paths, place)
    for (const host of new Set(hosts)) {
      const drafts = host.startsWith('.') ? this.#bySuffix : this.#byHost
      getOrAdd(drafts, host, () => new IndexDraft()).add(paths, place)
    }
  }

  /** @param fewest tables of so many rules are not divided; tests divide all */
  finish(fewest = few): RuleIndex {
    const none: ReadonlyMap<string, PathTable> = new Map()
    if (this.#all.any.length <= fewest) return new RuleIndex({ anyHost: this.#all, byHost: none, bySuffix: none })
    const tables = (drafts: ReadonlyMap<string, IndexDraft>) =>
      new Map([...drafts].map(([host, draft]) => [host, draft.finish(fewest)]))
    return new RuleIndex({
      anyHost: this.#anyHost.finish(fewest),
      byHost: tables(this.#byHost),
      bySuffix: tables(this.#bySuffix),
    })
  }
}

function getOrAdd<T>(map: Map<string, T>, key: string, create: () => T): T {
  const known = map.get(key)
  if (known !== undefined) return known
  const created = create()
  map.set(key, created)
  return created
}
