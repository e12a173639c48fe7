import { hash } from 'node:crypto'
import type { RecentActivity } from '../limits/recent-activity.ts'
import type { RuleCount } from '../limits/rule-tally.ts'
import type { RuleUsage } from '../policies/drift.ts'
import type { CompiledPolicy } from '../policy/evaluation/compile.ts'
import { formatRule } from '../policy/language/format.ts'
import type { Rule } from '../policy/language/model.ts'
import { createSerialQueue } from '../runtime/serial-queue.ts'
import type { RuleHits } from '../storage/hits.ts'
import type { PolicyList, ThreadPool } from '../threads/pool.ts'
import type { Base } from './base.ts'
import type { Rules } from './rules.ts'

export interface RuleHitParts extends Pick<Base, 'clock' | 'report' | 'store'> {
  readonly recent: Pick<RecentActivity, 'hits'>
  readonly rules: { readonly policies: { readonly book: Pick<Rules['policies']['book'], 'list'> } }
}

const dayMs = 86_400_000
const keepDays = 90
/** Rows that one removal takes. */
const maxPruned = 100

type PoliciesByName = ReadonlyMap<string, CompiledPolicy>

const byName = (list: PolicyList): PoliciesByName => new Map(list.map(({ compiled }) => [compiled.name, compiled]))

/** Decisions by rule that are kept, of all gateways and over restarts. */
export class KeptHits {
  readonly #parts: RuleHitParts
  readonly #versions = new RuleVersions()
  readonly #inTurn = createSerialQueue()
  #waiting = new Map<string, RuleHits>()
  /** In force in this thread, and in the others. */
  #policies: PoliciesByName
  #ofOthers: PoliciesByName

  constructor(parts: RuleHitParts) {
    this.#parts = parts
    this.#policies = byName(parts.rules.policies.book.list())
    this.#ofOthers = this.#policies
  }

  /** Adds what another thread has counted: before it had a change it sends what it counted under the policies before. */
  add(counts: readonly RuleCount[]): void {
    this.#add(counts, this.#ofOthers)
  }

  /** Call at each change of policies, at once. The other threads send what they counted before they have it. */
  async follow(list: PolicyList, others: Pick<ThreadPool, 'changePolicies'> | undefined): Promise<void> {
    this.#add(this.#parts.recent.hits.unstored(), this.#policies)
    this.#policies = byName(list)
    await others?.changePolicies(list)
    this.#ofOthers = this.#policies
  }

  #add(counts: readonly RuleCount[], policies: PoliciesByName): void {
    const day = Math.floor(this.#parts.clock.now() / dayMs)
    for (const { policy, rule, count } of counts) {
      const compiled = policies.get(policy)
      const version = compiled && this.#versions.of(compiled, rule)
      if (version !== undefined) this.#keep({ policy, rule: rule ?? '', version, day, count })
    }
  }

  /** Of the rules in force as they are now; of other gateways as of some seconds ago. */
  async of(policy: string): Promise<readonly RuleUsage[]> {
    await this.flush()
    const compiled = this.#policies.get(policy)
    if (compiled === undefined) return []
    const stored = await this.#parts.store.hits.of(policy)
    const mine = stored.filter(
      ({ rule, version }) => version === this.#versions.of(compiled, rule === '' ? null : rule),
    )
    return [...Map.groupBy(mine, ({ rule }) => rule)].map(([rule, days]) => ({
      rule: rule === '' ? null : rule,
      count: days.reduce((sum, { count }) => sum + count, 0),
      lastDay: days.reduce((last, { day }) => Math.max(last, day), 0),
    }))
  }

  /** Stores what was counted, one flush after the other. */
  flush(): Promise<void> {
    return this.#inTurn(() => this.#store())
  }

  async prune(): Promise<void> {
    const { clock, store } = this.#parts
    await store.hits.prune(Math.floor(clock.now() / dayMs) - keepDays, maxPruned)
  }

  async #store(): Promise<void> {
    this.#add(this.#parts.recent.hits.unstored(), this.#policies)
    const taken = [...this.#waiting.values()]
    this.#waiting = new Map()
    try {
      if (taken.length > 0) await this.#parts.store.hits.add(taken)
    } catch (error) {
      for (const hits of taken) this.#keep(hits)
      throw error
    }
  }

  #keep(hits: RuleHits): void {
    const key = JSON.stringify({ ...hits, count: 0 })
    this.#waiting.set(key, { ...hits, count: hits.count + (this.#waiting.get(key)?.count ?? 0) })
  }
}

/** Versions of rules: what a rule did before it was changed says nothing of what it does now. */
class RuleVersions {
  readonly #known = new WeakMap<CompiledPolicy, ReadonlyMap<string, RuleVersion>>()

  /** @param rule null: the default. Undefined when there is no such rule */
  of(compiled: CompiledPolicy, rule: string | null): string | undefined {
    if (rule === null) return compiled.policy.default
    const known = this.#known.get(compiled) ?? rulesByName(compiled)
    this.#known.set(compiled, known)
    const found = known.get(rule)
    if (found === undefined) return undefined
    found.version ??= hash('sha256', JSON.stringify(formatRule(found.rule)), 'base64url').slice(0, 22)
    return found.version
  }
}

interface RuleVersion {
  readonly rule: Rule
  version: string | undefined
}

const rulesByName = ({ policy }: CompiledPolicy): ReadonlyMap<string, RuleVersion> =>
  new Map(policy.rules.map(rule => [rule.name, { rule, version: undefined }]))
