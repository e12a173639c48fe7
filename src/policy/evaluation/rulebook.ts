import type { Effect } from '../language/model.ts'
import type { RiskSettings } from '../risk/risk-signals.ts'
import type { CompiledPolicy } from './compile.ts'

/** Settings of decisions beside policies: the same for all agents. */
export interface DecisionSettings {
  readonly risk: RiskSettings
  /** Whether requests that are allowed have a score where nothing but the log asks for it; true when absent. */
  readonly scoresAllowed?: boolean
}

/** Everything that applies to one agent at one moment. A request keeps the one it began with. */
export interface Rulebook extends DecisionSettings {
  /** Undefined when the agent has none, or `policyName` names none that exists. */
  readonly policy: CompiledPolicy | undefined
  /** Name of the agent's policy; null when it has none. */
  readonly policyName: string | null
  /** Effect for an agent without a policy. */
  readonly unassignedEffect: Effect
  /** Guardrail of the whole gateway: can restrict, never grant. */
  readonly global: CompiledPolicy | undefined
  /** Policies evaluated beside the agent's own, without effect. */
  readonly shadows: readonly CompiledPolicy[]
  /** Whether some rule reads the destination address, so that the name must be resolved first. */
  readonly readsDestination: boolean
  /** Whether some rule reads what is spent of budgets. */
  readonly readsSpend: boolean
}

/** A rulebook; what its policies read is worked out once here. */
export function createRulebook(parts: Omit<Rulebook, 'readsDestination' | 'readsSpend'>): Rulebook {
  const policies = [parts.policy, parts.global, ...parts.shadows]
  return {
    ...parts,
    readsDestination: policies.some(policy => policy?.readsDestination === true),
    readsSpend: policies.some(policy => policy?.readsSpend === true),
  }
}
