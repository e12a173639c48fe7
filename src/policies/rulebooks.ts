import type { LiveSettings } from '../config/live.ts'
import type { Config } from '../config/schema.ts'
import type { CompiledPolicy } from '../policy/evaluation/compile.ts'
import { createRulebook, type Rulebook } from '../policy/evaluation/rulebook.ts'
import type { AgentRecord } from '../storage/store.ts'
import { decisionSettings } from './language.ts'

/** The policies in force, as a decision needs them. */
export interface CompiledBook {
  get(name: string): CompiledPolicy | undefined
  /** `list` is another array after each change. */
  readonly active: { readonly list: readonly { readonly compiled: CompiledPolicy }[] }
}

function isSame(left: Rulebook, right: Rulebook): boolean {
  const { shadows } = right
  if (left.policy !== right.policy || left.global !== right.global || left.policyName !== right.policyName) return false
  return left.shadows.length === shadows.length && left.shadows.every((shadow, index) => shadow === shadows[index])
}

/** Which rules apply to an agent. */
export function createRulebooks(
  config: Config,
  book: CompiledBook,
  onSettings: LiveSettings['onChange'],
): (agent: AgentRecord) => Rulebook {
  const { UnassignedEffect: unassignedEffect, Global } = config.Policy
  // One a policy name, good as long as the policies in force are the same.
  const cache = new Map<string | null, Rulebook>()
  let older: ReadonlyMap<string | null, Rulebook> = cache
  const { active } = book
  let inForce = active.list
  let settings = decisionSettings(config)
  onSettings(next => {
    const made = decisionSettings(next)
    return () => {
      settings = made
      // With any change of settings, requests that wait are decided again.
      cache.clear()
      older = cache
    }
  })

  const make = (assigned: string | null): Rulebook => {
    const global = Global === undefined ? undefined : book.get(Global)
    // A guardrail that was taken away while the gateway runs denies everything, like any policy that is not there.
    const policyName = Global !== undefined && global === undefined ? Global : assigned
    const policy = policyName === null ? undefined : book.get(policyName)
    const shadows = inForce
      .map(({ compiled }) => compiled)
      .filter(({ policy: { shadowOf } }) => shadowOf === policyName)
    return createRulebook({
      ...{ policy, policyName, unassignedEffect, global, ...settings },
      shadows: policyName === null ? [] : shadows,
    })
  }

  return ({ policyName }) => {
    if (inForce !== active.list) {
      inForce = active.list
      older = new Map(cache)
      cache.clear()
    }
    const before = cache.get(policyName)
    if (before !== undefined) return before
    const made = make(policyName)
    const same = older.get(policyName)
    // A request that waits is decided again when its rulebook is another one: not for a change of other policies.
    const rulebook = same !== undefined && isSame(same, made) ? same : made
    cache.set(policyName, rulebook)
    return rulebook
  }
}
