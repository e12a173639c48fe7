import { resolve } from 'node:path'
import type { Registry } from '../agents/registry.ts'
import type { Clock } from '../clock.ts'
import type { Config } from '../config/schema.ts'
import type { Refusal } from '../errors.ts'
import { refuse, StartupError } from '../errors.ts'
import type { Log } from '../log.ts'
import type { Policies } from '../policies/open.ts'
import { openPolicies } from '../policies/open.ts'
import type { CompiledPolicy } from '../policy/compile.ts'
import { compilePolicy } from '../policy/compile.ts'
import type { Rulebook } from '../policy/decide.ts'
import { createRulebook } from '../policy/decide.ts'
import type { RequestDescription } from '../policy/describe.ts'
import { explainDescription } from '../policy/explain.ts'
import { formatPolicy, versionOf } from '../policy/format.ts'
import { readWindow } from '../policy/ordering.ts'
import { parsePolicy } from '../policy/parse.ts'
import type { RiskSettings } from '../policy/risk-signals.ts'
import { Zone } from '../policy/zone.ts'
import type { AgentRecord, Store } from '../storage/store.ts'

export interface RulesParts {
  readonly config: Config
  readonly baseDirectory: string
  readonly store: Store
  readonly clock: Clock
  readonly log: Log
  readonly registry: Registry
}

/** The policies in force, and which of them apply to whom. */
export interface Rules {
  readonly policies: Policies<CompiledPolicy>
  readonly rulebookOf: (agent: AgentRecord) => Rulebook
  /** What a policy makes of a described request, rule by rule. */
  readonly explain: (policy: CompiledPolicy, description: unknown) => object | Refusal
}

/** @throws StartupError with a line for each mistake in the policies, or when a setting names one that is not there */
export async function openRules(parts: RulesParts): Promise<Rules> {
  const { config, log, registry } = parts
  const hiddenHeaders = [config.Security.AgentAuth.CustomHeaderName]
  const policies = await openPolicies({
    store: parts.store,
    clock: parts.clock,
    language: {
      parse: document => parsePolicy(document, { hiddenHeaders }),
      format: formatPolicy,
      version: versionOf,
      compile: policy => compilePolicy(policy, { hiddenHeaders }),
    },
    directory: resolve(parts.baseDirectory, config.Policy.Directory),
    inline: config.Policies,
    usedBy: name => userOf(name, config, registry),
    report: {
      reloaded: names => log.info({ count: names.length }, `policies reloaded: ${names.join(', ')}`),
      rejected: lines => log.error({ count: lines.length }, `policies not reloaded: ${lines.join('; ')}`),
    },
  })
  try {
    assertNamed(config, policies)
  } catch (error) {
    policies.close()
    throw error
  }
  const risk = riskSettings(config)
  return {
    policies,
    rulebookOf: rulebooks({ config, risk, policies }),
    explain(policy, description) {
      const rulebook = createRulebook({ ...ofNobody, unassignedEffect: 'Deny', policyName: policy.name, policy, risk })
      // The body was checked against openapi.json, which describes this very shape.
      const explained = explainDescription(rulebook, description as RequestDescription, parts.clock.now())
      return typeof explained === 'string' ? refuse('invalid_body', explained) : explained
    },
  }
}

const ofNobody = { global: undefined, shadows: [] }

function riskSettings({ HumanInTheLoop, Risk }: Config): RiskSettings {
  const window = Risk.Hours === undefined ? undefined : readWindow(Risk.Hours)
  return {
    threshold: HumanInTheLoop.Threshold,
    points: Risk.Signals,
    sensitivePaths: Risk.SensitivePaths.map(piece => piece.toLowerCase()),
    burstPerMinute: Risk.BurstPerMinute,
    ...(window !== undefined && 'from' in window ? { hours: { window, zone: new Zone(Risk.TimeZone) } } : {}),
  }
}

/** What still names a policy, for people. */
function userOf(name: string, { Policy }: Config, registry: Registry): string | undefined {
  if (Policy.Global === name) return 'the setting Policy:Global'
  if (Policy.AssignOnRegistration === name) return 'the setting Policy:AssignOnRegistration'
  const user = registry
    .list({ page: 1, pageSize: Number.MAX_SAFE_INTEGER })
    .items.find(agent => agent.policyName === name)
  return user === undefined ? undefined : `agent ${user.id}`
}

/** A guardrail that is not there must not be a guardrail that lets everything pass. */
function assertNamed({ Policy }: Config, policies: Policies<CompiledPolicy>): void {
  for (const [key, name] of [
    ['Policy:Global', Policy.Global],
    ['Policy:AssignOnRegistration', Policy.AssignOnRegistration],
  ] as const) {
    if (name === undefined || policies.book.get(name) !== undefined) continue
    throw new StartupError(
      `${key}: there is no policy named ${name}. Add it to Policy:Directory (${Policy.Directory}).`,
    )
  }
}

interface RulebookParts {
  readonly config: Config
  readonly risk: RiskSettings
  readonly policies: Policies<CompiledPolicy>
}

function rulebooks({ config, risk, policies: { book } }: RulebookParts): Rules['rulebookOf'] {
  const { UnassignedEffect: unassignedEffect, Global } = config.Policy
  // One a policy name, good as long as its policies are the ones in force.
  const known = new Map<string | null, Rulebook>()
  return agent => {
    const global = Global === undefined ? undefined : book.get(Global)
    // A guardrail that was taken away while the gateway runs denies everything, like any policy that is not there.
    const policyName = Global !== undefined && global === undefined ? Global : agent.policyName
    const policy = policyName === null ? undefined : book.get(policyName)
    const before = known.get(policyName)
    if (before !== undefined && before.policy === policy && before.global === global) return before
    const rulebook = createRulebook({ policy, policyName, unassignedEffect, global, shadows: [], risk })
    known.set(policyName, rulebook)
    return rulebook
  }
}
