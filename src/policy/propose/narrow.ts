import type { CompiledPolicy } from '../evaluation/compile.ts'
import { walk } from '../evaluation/walk.ts'
import { formatPolicy, type RuleDocument } from '../language/format.ts'
import { limits, type Policy, type Rule } from '../language/model.ts'
import { factsOf } from '../lint/examined.ts'
import { leavesOf } from '../lint/warning.ts'
import { type MarkedHost, markedHosts } from './hosts.ts'
import { judge } from './judge.ts'
import { documentOf, type Proposal } from './learn.ts'
import { type ProposedRule, rulesOf } from './rules.ts'
import { type CountedRequests, type Observed, type RecordedRequest, templatesOf } from './template.ts'

/** Room for the end of a name. */
const maxName = 100

/**
 * The same policy, in which each Allow rule allows no more of its requests than was recorded. What is left of it is held. No
 * request gets a milder effect than before: each Allow rule is replaced, in its place, by rules with its conditions and more,
 * and then by itself as Hitl.
 *
 * @param isExact keeps every value of a path
 * @returns undefined when a priority is too large to be doubled
 */
export function narrow(compiled: CompiledPolicy, observed: Observed, isExact: boolean): Proposal | undefined {
  const { policy } = compiled
  if (policy.rules.some(({ priority }) => !Number.isSafeInteger(2 * priority + 1))) return undefined
  const narrowing = new Narrower(policy, observed, isExact)
  const document = formatPolicy(policy)
  const hosts = [...narrowing.hosts.values()]
  const allowed = Map.groupBy(observed.eligible, one => deciderOf(compiled, one))
  const rules = policy.rules.flatMap((rule, index) => {
    return narrowing.replace(rule, document.rules[index]!, allowed.get(rule.name) ?? [])
  })
  if (policy.default !== 'Allow') return { document: { ...document, rules }, made: narrowing.made, hosts }
  const ofDefault = narrowing.ofDefault(allowed.get(null) ?? [])
  return { document: { ...document, default: 'Hitl', rules: [...rules, ...ofDefault] }, made: narrowing.made, hosts }
}

/** The rule that allows the request today; null: the default. Undefined when it is not allowed. */
function deciderOf(compiled: CompiledPolicy, { request, counted }: RecordedRequest): string | null | undefined {
  if (counted !== undefined) return countedFor(compiled.policy, counted)
  const found = walk(compiled, factsOf(request))
  if (found.effect !== 'Allow') return undefined
  return found.last?.rule.name ?? null
}

/** Its values are not known: it counts for the rule that decided it, if that still allows. */
function countedFor(policy: Policy, { policy: name, rule }: CountedRequests): string | null | undefined {
  if (name !== policy.name) return undefined
  if (rule === null) return policy.default === 'Allow' ? null : undefined
  return policy.rules.find(one => one.name === rule)?.effect === 'Allow' ? rule : undefined
}

/** Whether the rule holds for hosts alone that its author wrote. */
const namesHost = ({ conditions }: Rule): boolean =>
  conditions.some(
    one => 'field' in one && /^input\.(?:origin|host|url)$/.test(one.field) && ['eq', 'in'].includes(one.operator),
  )

class Narrower {
  readonly made = new Map<string, ProposedRule>()
  readonly hosts: ReadonlyMap<string, MarkedHost>
  readonly #policy: Policy
  readonly #observed: Observed
  readonly #isExact: boolean
  readonly #names: Set<string>

  constructor(policy: Policy, observed: Observed, isExact: boolean) {
    this.#policy = policy
    this.#observed = observed
    this.hosts = markedHosts(observed.eligible)
    this.#isExact = isExact
    this.#names = new Set(policy.rules.map(({ name }) => name))
  }

  /** @param mine eligible requests that the rule allows */
  replace(rule: Rule, document: RuleDocument, mine: readonly RecordedRequest[]): readonly RuleDocument[] {
    const same = { ...document, priority: 2 * rule.priority + 1 }
    if (rule.effect !== 'Allow' || rule.mode === 'shadow') return [same]
    const { riskExempt: _, budget, credential, ...plain } = same
    const readsAll = (rule.onUnreadable ?? this.#policy.onUnreadable) === 'match'
    const rest = {
      ...plain,
      ...(budget !== undefined && { budget }),
      ...(credential !== undefined && { credential }),
      ...(this.#isExempt(rule) ? { riskExempt: true } : {}),
    }
    const capacity = limits.conditionsPerRule - leavesOf(rule, '').length
    const fitting = this.#proposed(mine, namesHost(rule)).filter(({ conditions }) => conditions.length <= capacity)
    const narrowed = fitting.map(found => {
      // A narrowed rule never applies to what cannot be read.
      const unread = readsAll ? { onUnreadable: 'noMatch' } : {}
      const conditions = [...document.conditions, ...found.conditions]
      return { ...rest, ...unread, name: this.#nameOf(rule.name, '-seen', found), conditions }
    })
    const held: RuleDocument = {
      ...plain,
      ...{ name: this.#nameOf(rule.name, '-not-seen'), priority: 2 * rule.priority, effect: 'Hitl' },
      ...{ reason: 'Not recorded often enough', onUnreadable: readsAll ? 'match' : 'noMatch' },
    }
    return [...narrowed, held]
  }

  /** The default as a rule without conditions, behind all others. */
  ofDefault(mine: readonly RecordedRequest[]): readonly RuleDocument[] {
    const lowest = this.#policy.rules.reduce((least, { priority }) => Math.min(least, priority), 0)
    return this.#proposed(mine, false).map(found => {
      const head = { name: this.#nameOf('default', '-seen', found), priority: 2 * lowest - 1 }
      return { ...documentOf(found, head), onUnreadable: 'noMatch' }
    })
  }

  /** At one priority any rule may be the first that matches: none may be exempt where another one was not. */
  #isExempt({ priority }: Rule): boolean {
    const alike = this.#policy.rules.filter(other => other.effect === 'Allow' && other.priority === priority)
    return alike.every(({ riskExempt }) => riskExempt)
  }

  #proposed(mine: readonly RecordedRequest[], isHostNamed: boolean): readonly ProposedRule[] {
    const hosts = isHostNamed ? new Map() : this.hosts
    const judged = judge(templatesOf(mine, this.#isExact), this.#observed.recorded, { promotes: false, hosts })
    return rulesOf(judged.filter(({ effect }) => effect === 'Allow'))
  }

  /** A name that no other rule has. @param found the rule that gets it, when it was made */
  #nameOf(rule: string, end: string, found?: ProposedRule): string {
    const base = `${rule.length + end.length > maxName ? 'rule' : rule}${end}`
    let name = base
    for (let count = 2; this.#names.has(name); count++) name = `${base}-${count}`
    this.#names.add(name)
    if (found !== undefined) this.made.set(name, found)
    return name
  }
}
