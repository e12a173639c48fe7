import type { Scope } from '../language/condition.ts'
import { Zone } from '../language/fields/zone.ts'
import { VersionDigest } from '../language/format.ts'
import { compareRules, type Policy } from '../language/model.ts'
import { hiddenHeaders, type LanguageOptions } from '../language/parse.ts'
import { type Divided, doAtOnce, doInTurns, rulesPerTurn } from '../turns/turns.ts'
import { type CompiledRule, compileRule, fieldsOf, IndexBuilder, type RuleIndex } from './rule.ts'

export interface CompiledPolicy {
  readonly name: string
  /** `sha256:<hex>` of the content: the same rules give the same version wherever they are read. */
  readonly version: string
  readonly policy: Policy
  /** Whether some rule reads the destination address, so that the name must be resolved first. */
  readonly readsDestination: boolean
  /** Whether some rule reads what is spent of budgets, so that the store may have to be asked first. */
  readonly readsSpend: boolean
  /** Budgets that rules name; undefined: none. Of the calls of an agent with this policy, they count only what these rules allow. */
  readonly budgets: ReadonlySet<string> | undefined
  /** Whether some rule names a budget or a credential. */
  readonly namesSettings: boolean
  /** Rules that decide, in order. */
  readonly rules: readonly CompiledRule[]
  readonly index: RuleIndex
  /** Rules that are only reported, in order. */
  readonly shadowRules: readonly CompiledRule[]
  readonly scope: Scope
}

/** Compiles a policy that parsePolicy gave, letting other work run in between. */
export function compilePolicy(policy: Policy, options: LanguageOptions = {}): Promise<CompiledPolicy> {
  return doInTurns(compile(policy, options))
}

/** The same at once: for small policies and tests. */
export function compilePolicySync(policy: Policy, options: LanguageOptions = {}): CompiledPolicy {
  return doAtOnce(compile(policy, options))
}

function* compile(policy: Policy, options: LanguageOptions): Divided<CompiledPolicy> {
  const scope: Scope = { zone: new Zone(policy.timezone), hiddenHeaders: hiddenHeaders(options.hiddenHeaders) }
  const version = new VersionDigest(policy)
  const index = new IndexBuilder()
  const rules: CompiledRule[] = []
  const shadowRules: CompiledRule[] = []
  const budgets = new Set<string>()
  let readsDestination = false
  let readsSpend = false
  let namesSettings = false
  for (const [rank, rule] of policy.rules.toSorted(compareRules).entries()) {
    if (rank > 0 && rank % rulesPerTurn === 0) yield
    version.add(policy.rules[rank]!)
    const fields = rule.conditions.flatMap(fieldsOf)
    readsDestination ||= fields.some(field => field.kind.destination === true)
    readsSpend ||= fields.some(field => field.kind.spend === true)
    const compiled = compileRule(rule, { policy, scope, rank, options })
    if (rule.mode === 'shadow') shadowRules.push(compiled)
    else {
      index.add(compiled, rules.push(compiled) - 1)
      if (rule.budget !== '') budgets.add(rule.budget)
      namesSettings ||= rule.budget !== '' || rule.credential !== ''
    }
  }
  yield
  return {
    name: policy.name,
    version: version.finish(),
    policy,
    ...{ readsDestination, readsSpend, namesSettings },
    budgets: budgets.size === 0 ? undefined : budgets,
    rules,
    index: index.finish(),
    shadowRules,
    scope,
  }
}
