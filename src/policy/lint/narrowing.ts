import type { CompiledPolicy } from '../evaluation/compile.ts'
import { type CompiledRule, IndexBuilder } from '../evaluation/rule.ts'
import { rulesBefore } from '../evaluation/walk.ts'
import { fieldOf, operatorOf, type Scope } from '../language/condition.ts'
import type { Field } from '../language/fields/fields.ts'
import type { Node } from '../language/model.ts'
import { ListLookup, normaliseList, scalarOf } from '../language/operators/element-tests.ts'
import type { Scalar } from '../language/operators/values.ts'
import type { Facts } from '../request/facts.ts'
import { Several } from '../values/path.ts'
import { missing } from '../values/truth.ts'

/** A condition of a rule that holds only where a field has one of these values. */
interface Equality {
  readonly field: Field
  readonly ignoreCase: boolean
  readonly scalars: readonly Scalar[]
}

/** A rule is listed under a value that at most so many rules demand; others are found by host and path. */
const fewRules = 16
/** Fields by which rules are found: each is read of each request. */
const maxFields = 32

/**
 * Finds the rules that can match a whole request by the values that they demand of any field, so that the requests of all
 * rules are compared with few others. The index of decisions knows hosts and paths alone, since it is asked before the body.
 */
export class Narrowing {
  readonly #byField: readonly FieldValues[]
  /** The policy with an index of the rules that are not listed under a value. */
  readonly #others: CompiledPolicy
  readonly #rules: readonly CompiledRule[]

  constructor(compiled: CompiledPolicy) {
    const { rules, scope } = compiled
    const byField = new Map<string, FieldValues>()
    const demands = rarest(rules)
    const largest = [...Map.groupBy(demands.values(), nameOf)].sort(([, left], [, right]) => right.length - left.length)
    for (const [name, alike] of largest.slice(0, maxFields)) byField.set(name, new FieldValues(alike[0]!, scope))
    const others = new IndexBuilder()
    for (const [place, rule] of rules.entries()) {
      const demand = demands.get(rule)
      const values = demand && byField.get(nameOf(demand))
      if (demand === undefined || values === undefined) others.add(rule, place)
      else values.add(demand.scalars, rule)
    }
    this.#byField = [...byField.values()]
    this.#others = { ...compiled, index: others.finish() }
    this.#rules = rules
  }

  /** The rules before a place that can match, in order. */
  before(place: number, facts: Facts): readonly CompiledRule[] {
    const { rank } = this.#rules[place]!
    const found = this.#byField.flatMap(values => values.of(facts).filter(rule => rule.rank < rank))
    if (found.length === 0) return rulesBefore(this.#others, facts, rank - 1)
    const all = new Set([...found, ...rulesBefore(this.#others, facts, rank - 1)])
    return [...all].sort((left, right) => left.rank - right.rank)
  }

  /** Fields that `before` reads. */
  get fields(): number {
    return this.#byField.length
  }
}

/** Of each rule the equality whose values the fewest rules demand, where they are few. */
function rarest(rules: readonly CompiledRule[]): ReadonlyMap<CompiledRule, Equality> {
  const demanding = new Map<string, number>()
  const keys = (equality: Equality) => equality.scalars.map(({ text }) => `${nameOf(equality)} ${text}`)
  const all = rules.map(rule => rule.rule.conditions.flatMap(node => equalityOf(node) ?? []))
  for (const key of all.flat().flatMap(keys)) demanding.set(key, (demanding.get(key) ?? 0) + 1)
  const found = new Map<CompiledRule, Equality>()
  for (const [place, equalities] of all.entries()) {
    let least = fewRules
    for (const equality of equalities) {
      const highest = Math.max(...keys(equality).map(key => demanding.get(key) ?? 0))
      if (highest > least) continue
      least = highest
      found.set(rules[place]!, equality)
    }
  }
  return found
}

const nameOf = ({ field, ignoreCase }: Equality) => `${field.text} ${ignoreCase}`

/** Of a path there may be several readings, and of names the letter case may be in doubt. */
function equalityOf(node: Node): Equality | undefined {
  if (!('field' in node)) return undefined
  const [field, { name }] = [fieldOf(node), operatorOf(node)]
  if ((name !== 'eq' && name !== 'in') || field.kind.ofPath === true || field.ofNames || field.kind.phase === 'risk')
    return undefined
  const { ignoreCase } = node
  const operand = { field, value: node.value, valueType: node.valueType, ignoreCase }
  return { field, ignoreCase, scalars: name === 'eq' ? [scalarOf(operand)] : normaliseList(operand) }
}

/** Rules by the values that they demand of one field. */
class FieldValues {
  readonly #like: Equality
  readonly #scope: Scope
  readonly #scalars: Scalar[] = []
  /** The rule of each value. */
  readonly #owners: CompiledRule[] = []
  #lookup: ListLookup | undefined

  constructor(like: Equality, scope: Scope) {
    this.#like = like
    this.#scope = scope
  }

  add(scalars: readonly Scalar[], rule: CompiledRule): void {
    for (const scalar of scalars) {
      this.#scalars.push(scalar)
      this.#owners.push(rule)
    }
  }

  /** All of them where the value cannot be read. */
  of(facts: Facts): readonly CompiledRule[] {
    const { field, ignoreCase } = this.#like
    const value = field.read(facts, this.#scope.zone)
    if (value === missing) return []
    if (typeof value === 'symbol' || value instanceof Several) return this.#owners
    this.#lookup ??= new ListLookup(this.#scalars, { field, ignoreCase, value: '', valueType: undefined })
    const lookup = this.#lookup
    const elements: readonly unknown[] = Array.isArray(value) ? value : [value]
    return elements.flatMap(element => lookup.find(element).map(place => this.#owners[place]!))
  }
}
