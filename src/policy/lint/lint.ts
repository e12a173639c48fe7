import { missingSetting, type NamedSettings } from '../evaluation/rule.ts'
import type { Policy } from '../language/model.ts'
import { bodyFirstWarnings } from './body-first.ts'
import { Examined, type Unfinished } from './examined.ts'
import { conditionWarnings } from './lint-rule.ts'
import { mcpSessionWarnings } from './mcp-session.ts'
import { missingPassesWarnings } from './missing-passes.ts'
import { orderWarnings, tieWarnings } from './order.ts'
import { objectFieldsOf, valueWarnings } from './values.ts'
import type { LintWarning } from './warning.ts'

export type { Unfinished } from './examined.ts'
export type { LintWarning } from './warning.ts'

export interface LintOptions extends NamedSettings {
  /** Milliseconds since the epoch. */
  readonly now?: number
  /** Since when the policy has been as it is, milliseconds since the epoch. */
  readonly unchangedSince?: number
}

export interface LintReport {
  readonly warnings: readonly LintWarning[]
  /** Warnings that a rule silences. */
  readonly silenced: readonly SilencedWarning[]
  /** What a large policy was not searched for to the end. */
  readonly unfinished: readonly Unfinished[]
}

export interface SilencedWarning extends LintWarning {
  /** The author's words. */
  readonly reason: string
}

const shadowDays = 30
const day = 86_400_000

/** Reports what is valid but probably a mistake. Each warning is proved, or shown by a request. */
export function lintPolicy(policy: Policy, options: LintOptions = {}): LintReport {
  const examined = new Examined(policy)
  const { rules, shadowRules, scope } = examined.compiled
  const objects = objectFieldsOf(policy)
  const found = [
    ...policyWarnings(policy),
    ...[...rules, ...shadowRules].flatMap(({ rule }) => {
      const path = examined.pathOf(rule)
      return [...conditionWarnings(rule, path, scope), ...valueWarnings(rule, path, { scope, objects })]
    }),
    ...orderWarnings(examined).warnings,
    ...tieWarnings(examined),
    ...bodyFirstWarnings(examined),
    ...missingPassesWarnings(examined),
    ...mcpSessionWarnings(examined),
    ...shadowWarnings(policy, options),
    ...settingWarnings(policy, options),
  ]
  return { ...applySilence(policy, found), unfinished: examined.unfinished }
}

function policyWarnings(policy: Policy): LintWarning[] {
  if (policy.default !== 'Allow') return []
  const message = 'the default is Allow: requests that no rule matches pass'
  return [{ code: 'W_CATCH_ALL', path: 'default', rule: null, message }]
}

function shadowWarnings(policy: Policy, { now, unchangedSince }: LintOptions): LintWarning[] {
  if (now === undefined || unchangedSince === undefined || now - unchangedSince <= shadowDays * day) return []
  return policy.rules.flatMap((rule, index) => {
    if (rule.mode !== 'shadow') return []
    const message = `in shadow for more than ${shadowDays} days: enforce it or remove it`
    return [{ code: 'W_SHADOW_OLD' as const, path: `rules[${index}].mode`, rule: rule.name, message }]
  })
}

/** Budgets and credentials are settings of the gateway, and a setting may go after the policy came. */
function settingWarnings({ rules }: Policy, options: NamedSettings): LintWarning[] {
  return rules.flatMap((rule, index) => {
    const found = missingSetting(rule, options)
    if (found === undefined) return []
    const { member, name, list } = found
    const code = member === 'budget' ? ('W_UNKNOWN_BUDGET' as const) : ('W_UNKNOWN_CREDENTIAL' as const)
    const message = `denies instead: there is no ${member} ${name} in ${list}`
    return [{ code, path: `rules[${index}].${member}`, rule: rule.name, message }]
  })
}

/** Takes out what the rules silence, and warns of what silences nothing. */
function applySilence(policy: Policy, found: readonly LintWarning[]): Omit<LintReport, 'unfinished'> {
  const silencing = new Map(policy.rules.filter(({ silence }) => silence.length > 0).map(rule => [rule.name, rule]))
  const warnings: LintWarning[] = []
  const silenced: SilencedWarning[] = []
  for (const warning of found) {
    const entry = silencing.get(warning.rule ?? '')?.silence.find(({ code }) => code === warning.code)
    if (entry === undefined) warnings.push(warning)
    else silenced.push({ ...warning, reason: entry.reason })
  }
  const used = new Set(silenced.map(({ rule, code }) => `${code} ${rule}`))
  for (const [index, rule] of policy.rules.entries()) {
    for (const [place, { code }] of rule.silence.entries()) {
      // A rule in shadow gets old later.
      if (used.has(`${code} ${rule.name}`) || (code === 'W_SHADOW_OLD' && rule.mode === 'shadow')) continue
      const message = `silences nothing: the rule has no warning ${code}; remove it`
      warnings.push({ code: 'W_UNUSED_SILENCE', path: `rules[${index}].silence[${place}]`, rule: rule.name, message })
    }
  }
  return { warnings, silenced }
}
