import type { CompiledPolicy } from './compile.ts'
import type { Effect } from './decision.ts'
import type { RiskSettings } from './risk-signals.ts'

/** Everything that applies to one agent at one moment. A request keeps the one it began with. */
export interface Rulebook {
  /** Undefined when the agent has none, or `policyName` names none that exists. */
  readonly policy: CompiledPolicy | undefined
  /** Name of the agent's policy; null when it has none. */
  readonly policyName: string | null
  /** What applies to an agent without a policy. */
  readonly unassignedEffect: Effect
  /** Guardrail of the whole gateway: can restrict, never grant. */
  readonly global: CompiledPolicy | undefined
  /** Policies evaluated beside the agent's own, without effect. */
  readonly shadows: readonly CompiledPolicy[]
  readonly risk: RiskSettings
  /** Whether some rule reads the destination address, so that the name must be resolved first. */
  readonly readsDestination: boolean
}

/** A rulebook; what its policies read is worked out once here. */
export function createRulebook(parts: Omit<Rulebook, 'readsDestination'>): Rulebook {
  const policies = [parts.policy, parts.global, ...parts.shadows]
  return { ...parts, readsDestination: policies.some(policy => policy?.readsDestination === true) }
}
