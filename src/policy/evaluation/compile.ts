import type { Scope } from '../language/condition.ts'
import { Zone } from '../language/fields/zone.ts'
import { VersionDigest } from '../language/format.ts'
import { compareRules, type Policy, type Rule } from '../language/model.ts'
import { hiddenHeaders } from '../language/parse.ts'
import { nextTurn, rulesPerTurn, type Turns } from '../turns/turns.ts'
import { type CompiledRule, compileRule, fieldsOf } from './rule.ts'
import { IndexBuilder, type RuleIndex } from './rule-index.ts'

export interface CompileOptions extends Turns {
  /** Header fields beside Authorization and Cookie whose values rules may not read. */
  readonly hiddenHeaders?: readonly string[]
}

export interface CompiledPolicy {
  readonly name: string
  readonly version: string
  readonly policy: Policy
  readonly ruleCount: number
  /** Whether some rule reads the destination address, so that the name must be resolved first. */
  readonly readsDestination: boolean
  /** Whether some rule may need the body. */
  readonly readsBody: boolean
  /** Rules that decide, in order. */
  readonly rules: readonly CompiledRule[]
  /** Undefined for a policy so small that asking every rule is faster. */
  readonly index: RuleIndex | undefined
  /** Rules that are only reported, in order. */
  readonly shadowRules: readonly CompiledRule[]
  readonly scope: Scope
}

const smallPolicy = 12

/** Compiles a policy that parsePolicy gave, letting other work run in between. */
export async function compilePolicy(policy: Policy, options: CompileOptions = {}): Promise<CompiledPolicy> {
  const pause = options.pause ?? nextTurn
  const compiler = new Compiler(policy, options)
  while (compiler.step(rulesPerTurn)) await pause()
  await pause()
  return compiler.finish()
}

/** The same at once: for small policies and tests. */
export function compilePolicySync(policy: Policy, options: CompileOptions = {}): CompiledPolicy {
  const compiler = new Compiler(policy, options)
  compiler.step(policy.rules.length)
  return compiler.finish()
}

class Compiler {
  readonly #policy: Policy
  readonly #scope: Scope
  readonly #ordered: readonly Rule[]
  readonly #rules: CompiledRule[] = []
  readonly #shadowRules: CompiledRule[] = []
  readonly #index = new IndexBuilder()
  readonly #version: VersionDigest
  #next = 0
  #readsDestination = false
  #readsBody = false

  constructor(policy: Policy, options: CompileOptions) {
    this.#policy = policy
    this.#version = new VersionDigest(policy)
    this.#scope = { zone: new Zone(policy.timezone), hiddenHeaders: hiddenHeaders(options.hiddenHeaders) }
    this.#ordered = policy.rules.toSorted(compareRules)
  }

  /** Compiles up to `count` more rules; false when there are none left. */
  step(count: number): boolean {
    const end = Math.min(this.#next + count, this.#ordered.length)
    for (; this.#next < end; this.#next++) {
      this.#version.add(this.#policy.rules[this.#next]!)
      const rule = this.#ordered[this.#next]!
      this.#note(rule)
      const compiled = compileRule(rule, { policy: this.#policy, scope: this.#scope, rank: this.#next })
      if (rule.mode === 'shadow') this.#shadowRules.push(compiled)
      else this.#index.add(compiled, this.#rules.push(compiled) - 1)
    }
    return this.#next < this.#ordered.length
  }

  finish(): CompiledPolicy {
    const policy = this.#policy
    return {
      name: policy.name,
      version: this.#version.finish(),
      policy,
      ruleCount: policy.rules.length,
      readsDestination: this.#readsDestination,
      readsBody: this.#readsBody,
      rules: this.#rules,
      index: this.#rules.length <= smallPolicy ? undefined : this.#index.finish(this.#rules),
      shadowRules: this.#shadowRules,
      scope: this.#scope,
    }
  }

  #note(rule: Rule): void {
    for (const field of rule.conditions.flatMap(fieldsOf)) {
      this.#readsDestination ||= field.kind.destination === true
      this.#readsBody ||= field.kind.phase !== 'head'
    }
  }
}
