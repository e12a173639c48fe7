import { resolve } from 'node:path'
import type { Config } from '../config/schema.ts'
import type { CompiledPolicy } from '../policy/evaluation/compile.ts'
import { createRulebook, type DecisionSettings, type Rulebook } from '../policy/evaluation/rulebook.ts'
import { Zone } from '../policy/language/fields/zone.ts'
import { parseWindow } from '../policy/language/operators/ordering.ts'
import type { LanguageOptions } from '../policy/language/parse.ts'
import type { RiskSettings } from '../policy/risk/risk-signals.ts'
import { systemClock } from '../runtime/clock.ts'
import { type PreparedSet, prepareSet } from './entry.ts'
import { readFixedPolicies } from './open.ts'

/** The policy language as a configuration has it: no rule reads the field that carries the agent's token. */
export function languageOf({ Security, HumanInTheLoop, Budgets, Credentials }: Config): LanguageOptions {
  return {
    budgets: new Set(Budgets.flatMap(({ Name }) => Name ?? [])),
    credentials: new Set(Credentials.flatMap(({ Name }) => Name ?? [])),
    hiddenHeaders: [Security.AgentAuth.CustomHeaderName],
    // Read for each policy: the setting may change.
    get maxWaitSeconds() {
      return HumanInTheLoop.TimeoutSeconds
    },
  }
}

export function decisionSettings(config: Config): DecisionSettings {
  const { Logging } = config
  return { risk: riskSettings(config), scoresAllowed: Logging.Access }
}

function riskSettings({ HumanInTheLoop, Risk }: Config): RiskSettings {
  const window = Risk.Hours === undefined ? undefined : parseWindow(Risk.Hours)
  return {
    threshold: HumanInTheLoop.Threshold,
    points: Risk.Signals,
    sensitivePaths: Risk.SensitivePaths.map(piece => piece.toLowerCase()),
    burstPerMinute: Risk.BurstPerMinute,
    ...(window !== undefined ? { hours: { window, zone: new Zone(Risk.TimeZone) } } : {}),
  }
}

/** The rules of an agent that has this policy, in a gateway that has no other. */
export function soloRulebook(policy: CompiledPolicy, settings: DecisionSettings): Rulebook {
  const ofNobody = { global: undefined, shadows: [], unassignedEffect: 'Deny' } as const
  return createRulebook({ ...ofNobody, policyName: policy.name, policy, ...settings })
}

/** The same by the name of the policy, of a set of policies. */
export function soloRulebooks(
  entries: ReadonlyMap<string, { readonly compiled: CompiledPolicy }>,
  settings: DecisionSettings,
): (name: string) => Rulebook | undefined {
  return name => {
    const entry = entries.get(name)
    return entry && soloRulebook(entry.compiled, settings)
  }
}

/** The settings that name a policy which is not there. A guardrail that is missing must not let everything pass. */
export function missingPolicies({ Policy }: Config, isThere: (name: string) => boolean): string[] {
  const named = [
    ['Policy:Global', Policy.Global],
    ['Policy:AssignOnRegistration', Policy.AssignOnRegistration],
  ] as const
  return named.flatMap(([key, name]) =>
    name === undefined || isThere(name)
      ? []
      : [`${key}: there is no policy named ${name}. Add it to Policy:Directory (${Policy.Directory}).`],
  )
}

/** The policies of gateway.yaml and Policy:Directory, with a line for each mistake in them and in what names them. */
export async function readPolicies(config: Config, baseDirectory: string): Promise<PreparedSet> {
  const directory = resolve(baseDirectory, config.Policy.Directory)
  const { inputs, lines } = await readFixedPolicies({ directory, inline: config.Policies, clock: systemClock })
  const prepared = await prepareSet(languageOf(config), inputs)
  const missing = missingPolicies(config, name => prepared.entries.has(name))
  return { entries: prepared.entries, lines: [...lines, ...prepared.lines, ...missing] }
}
