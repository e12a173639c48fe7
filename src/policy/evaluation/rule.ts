/** A rule made ready to be asked, and the index of rules by the host and path that they are about. */
import { compileChatFields } from '../language/chat.ts'
import { compileCondition, fieldOf, type Scope, type Test } from '../language/condition.ts'
import type { Field } from '../language/fields/fields.ts'
import { appliesUnread, type Condition, type Effect, type Node, type Policy, type Rule } from '../language/model.ts'
import type { LanguageOptions } from '../language/parse.ts'
import { compileTitle, type Title } from '../language/title.ts'
import type { Facts } from '../request/facts.ts'
import { and, False, not, or, True, type Truth, Unreadable } from '../values/truth.ts'
import { keysOf, maxPathDepth } from './rule-keys.ts'

export interface CompiledRule {
  readonly rule: Rule
  /** Deny for a rule that names a budget or a credential which is not there. */
  readonly effect: Effect
  readonly missing: MissingSetting | undefined
  /** Place in the order in which rules are asked, shadow rules included. */
  readonly rank: number
  /** Conditions on the head first; all must hold. */
  readonly tests: readonly Test[]
  /** What the rule does when it cannot be evaluated. */
  readonly whenUnreadable: Truth
  readonly title: Title | undefined
  /** Undefined when nobody may approve in a chat. */
  readonly chatFields: readonly Field[] | undefined
  /** The conditions as written, for explanations. */
  readonly nodes: readonly CompiledNode[]
}

/** A condition or group with its test. */
export interface CompiledNode {
  readonly node: Node
  readonly test: Test
  readonly inner: readonly CompiledNode[]
}

interface RuleContext {
  readonly policy: Policy
  readonly scope: Scope
  readonly rank: number
  readonly options: NamedSettings
}

export function compileRule(rule: Rule, { policy, scope, rank, options }: RuleContext): CompiledRule {
  const nodes = rule.conditions.map(node => compileNode(node, scope))
  const priced = nodes.map(node => ({ node, cost: costOf(node.node) }))
  const tests = priced.sort((left, right) => left.cost - right.cost).map(({ node }) => node.test)
  const whenUnreadable = appliesUnread(policy, rule) ? True : False
  const title = compileTitle(rule.title, scope)
  const chatFields = rule.chatApproval ? compileChatFields(rule.chatFields, scope) : undefined
  const missing = missingSetting(rule, options)
  const effect = missing === undefined ? rule.effect : 'Deny'
  return { rule, effect, missing, rank, tests, whenUnreadable, title, chatFields, nodes }
}

/** Names that rules may use; an absent set: any. */
export type NamedSettings = Pick<LanguageOptions, 'budgets' | 'credentials'>

/** What a rule names and the settings do not have. */
export interface MissingSetting {
  readonly member: 'budget' | 'credential'
  readonly name: string
  readonly list: 'Budgets' | 'Credentials'
}

export function missingSetting(
  { budget, credential }: Rule,
  { budgets, credentials }: NamedSettings,
): MissingSetting | undefined {
  if (budget !== '' && budgets?.has(budget) === false) return { member: 'budget', name: budget, list: 'Budgets' }
  if (credential !== '' && credentials?.has(credential) === false) {
    return { member: 'credential', name: credential, list: 'Credentials' }
  }
  return undefined
}

/** The value of a rule: its conditions together, and what `onUnreadable` makes of an unreadable one. */
export function askRule(rule: CompiledRule, facts: Facts): Truth {
  const { tests } = rule
  let result: Truth = True
  for (let index = 0; index < tests.length; index++) {
    const value = tests[index]!(facts)
    if (value === False) return False
    if (value !== True) result = and(result, value)
  }
  return result === Unreadable ? rule.whenUnreadable : result
}

/** The policy was checked before, so that nothing can be wrong here. */
function compileNode(node: Node, scope: Scope): CompiledNode {
  const inner = innerNodes(node).map(child => compileNode(child, scope))
  return { node, inner, test: testOf(node, inner, scope) }
}

export function innerNodes(node: Node): readonly Node[] {
  if ('all' in node) return node.all
  if ('any' in node) return node.any
  return 'not' in node ? [node.not] : []
}

function testOf(node: Node, inner: readonly CompiledNode[], scope: Scope): Test {
  const tests = inner.map(child => child.test)
  if ('all' in node) return combined(tests, and, False)
  if ('any' in node) return combined(tests, or, True)
  if ('not' in node) return facts => not(tests[0]!(facts))
  return compileCondition(node, scope)
}

type Fold = (left: Truth, right: Truth) => Truth

/** Combines the tests from the first on, until the value that decides the group. */
function combined(tests: readonly Test[], fold: Fold, decisive: Truth): Test {
  return facts => {
    let result = tests[0]!(facts)
    for (let index = 1; index < tests.length && result !== decisive; index++)
      result = fold(result, tests[index]!(facts))
    return result
  }
}

/** Cheap and known tests first; the result of a rule does not depend on the order. */
function costOf(node: Node): number {
  if ('not' in node) return costOf(node.not)
  if ('field' in node) return conditionCost(node)
  const nodes = 'all' in node ? node.all : node.any
  return nodes.reduce((cost, inner) => Math.max(cost, costOf(inner)), 1) + 1
}

const phaseCost = { head: 0, risk: 100, body: 200 }
const slowOperators = ['matches', 'notMatches', 'like', 'notLike', 'detects', 'ipIn', 'notIpIn']

function conditionCost(condition: Condition): number {
  const field = fieldOf(condition)
  const reading = field.plain === undefined ? 4 : 0
  return phaseCost[field.kind.phase] + reading + (slowOperators.includes(condition.operator) ? 10 : 0)
}

export function fieldsOf(node: Node): readonly Field[] {
  return 'field' in node ? [fieldOf(node)] : innerNodes(node).flatMap(fieldsOf)
}

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
