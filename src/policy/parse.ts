import { credentialHeaders, type Scope } from './condition.ts'
import type { Effect } from './decision.ts'
import { Keys } from './keys.ts'
import { effects, limits, type OnUnreadable, type Policy, type Rule } from './model.ts'
import { parseConditions } from './parse-condition.ts'
import { type PolicyProblem, Problems } from './problems.ts'
import { isTimeZone, Zone } from './zone.ts'

export { formatPolicy, versionOf } from './format.ts'

export interface ParseOptions {
  /** Header fields beside Authorization and Cookie whose values rules may not read: the gateway's own token header. */
  readonly hiddenHeaders?: readonly string[]
}

const policyKeys = ['name', 'description', 'owner', 'default', 'timezone', 'onUnreadable', 'shadowOf', 'rules']
/** What `GET /policies/{name}` adds; ignored, so that its answer can be sent back. */
const shownKeys = ['policyName', 'createdOn', 'version', 'ruleCount', 'source']
const ruleKeys = ['name', 'priority', 'effect', 'mode', 'riskExempt', 'reason', 'approvals', 'conditions']

/**
 * A policy from a document: the shape of the specification or the authoring form (numbers, booleans and lists as
 * values, effects in any letter case). Gives every mistake at once; never throws.
 */
export function parsePolicy(
  document: unknown,
  options: ParseOptions = {},
): { readonly policy: Policy } | { readonly problems: readonly PolicyProblem[] } {
  const problems = new Problems()
  const keys = Keys.of(document, { path: '', known: policyKeys, ignored: shownKeys }, problems)
  if (keys === undefined) {
    return { problems: [{ code: 'E_CONDITION', path: '', message: 'a policy is a map with name and rules' }] }
  }
  const policy = readPolicy(keys, problems, options)
  return problems.found.length > 0 ? { problems: problems.found } : { policy }
}

/** Lower-case names of all header fields whose values are hidden from rules. */
export function hiddenHeaders(names: readonly string[] = []): ReadonlySet<string> {
  return new Set([...credentialHeaders, ...names.map(name => name.toLowerCase())])
}

function readPolicy(keys: Keys, problems: Problems, options: ParseOptions): Policy {
  const zoneName = keys.text('timezone', 'UTC')
  const known = isTimeZone(zoneName)
  if (!known) problems.add('E_VALUE', 'timezone', `unknown time zone ${JSON.stringify(zoneName.slice(0, 64))}`)
  const scope = { zone: new Zone(known ? zoneName : 'UTC'), hiddenHeaders: hiddenHeaders(options.hiddenHeaders) }
  return {
    name: readName(keys, problems),
    description: keys.text('description', ''),
    owner: keys.text('owner', ''),
    default: readEffect(keys, 'default', 'Deny'),
    timezone: zoneName,
    onUnreadable: keys.choice('onUnreadable', ['failSafe', 'match', 'noMatch'], 'failSafe') as OnUnreadable,
    shadowOf: readShadowOf(keys, problems),
    rules: readRules(keys.get('rules'), problems, scope),
  }
}

const nameGrammar = /^[A-Za-z0-9._-]{1,128}$/

function readName(keys: Keys, problems: Problems): string {
  const name = keys.get('name')
  if (typeof name === 'string' && nameGrammar.test(name)) return name
  const cause = name === undefined ? 'a policy needs a name' : 'bad policy name'
  problems.add('E_NAME', keys.at('name'), `${cause}: 1 to 128 letters, digits, dots, underscores or dashes`)
  return ''
}

function readShadowOf(keys: Keys, problems: Problems): string | null {
  const name = keys.get('shadowOf')
  if (name === undefined || name === null) return null
  if (typeof name === 'string' && nameGrammar.test(name)) return name
  problems.add('E_NAME', keys.at('shadowOf'), 'shadowOf is the name of a policy')
  return null
}

function readEffect(keys: Keys, key: string, standard?: Effect): Effect {
  const value = keys.get(key)
  if (value === undefined && standard !== undefined) return standard
  const effect = typeof value === 'string' && effects.find(known => known.toLowerCase() === value.toLowerCase())
  if (effect !== undefined && effect !== false) return effect
  const shown = value === undefined ? 'missing effect' : `unknown effect ${JSON.stringify(value)?.slice(0, 64)}`
  keys.problem('E_EFFECT', key, `${shown}: Allow, Deny or Hitl`)
  return 'Deny'
}

function readRules(value: unknown, problems: Problems, scope: Scope): readonly Rule[] {
  if (value === undefined) return []
  if (!Array.isArray(value)) {
    problems.add('E_CONDITIONS', 'rules', 'rules is a list')
    return []
  }
  if (value.length > limits.rules) {
    problems.add('E_LIMIT', 'rules', `a policy has at most ${limits.rules} rules`)
    return []
  }
  const seen = new Set<string>()
  const rules: Rule[] = []
  for (const [index, entry] of value.entries()) {
    const rule = readRule(entry, `rules[${index}]`, problems, scope)
    if (rule === undefined) continue
    if (rule.name !== '' && seen.has(rule.name)) {
      problems.add('E_DUPLICATE', `rules[${index}].name`, `another rule is named ${JSON.stringify(rule.name)}`)
    }
    seen.add(rule.name)
    rules.push(rule)
  }
  return rules
}

function readRule(value: unknown, path: string, problems: Problems, scope: Scope): Rule | undefined {
  const keys = Keys.of(value, { path, known: ruleKeys, ignored: [] }, problems)
  if (keys === undefined) {
    problems.add('E_CONDITION', path, 'a rule is a map with name, effect and conditions')
    return undefined
  }
  const effect = readEffect(keys, 'effect')
  const riskExempt = keys.flag('riskExempt')
  if (riskExempt && effect !== 'Allow') keys.problem('E_VALUE', 'riskExempt', 'only an Allow rule can be riskExempt')
  return {
    name: readRuleName(keys),
    priority: readPriority(keys),
    effect,
    mode: keys.choice('mode', ['enforce', 'shadow'], 'enforce') as Rule['mode'],
    riskExempt,
    reason: keys.text('reason', ''),
    approvals: readApprovals(keys, effect),
    conditions: parseConditions(keys.get('conditions'), keys.at('conditions'), problems, scope),
  }
}

function readRuleName(keys: Keys): string {
  const name = keys.get('name')
  if (typeof name === 'string' && /^[^\p{Cc}]{1,128}$/u.test(name)) return name
  keys.problem('E_NAME', 'name', 'a rule needs a name of 1 to 128 characters')
  return ''
}

function readPriority(keys: Keys): number {
  const value = keys.get('priority') ?? 0
  // Adding zero turns -0 into 0.
  if (typeof value === 'number' && Number.isSafeInteger(value)) return value + 0
  keys.problem('E_PRIORITY', 'priority', 'priority is an integer')
  return 0
}

function readApprovals(keys: Keys, effect: Effect): number {
  const value = keys.get('approvals') ?? 1
  const fine = typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= limits.approvals
  if (fine && (effect === 'Hitl' || value === 1)) return value
  const message = fine ? 'only a Hitl rule needs approvals' : `approvals is an integer from 1 to ${limits.approvals}`
  keys.problem('E_VALUE', 'approvals', message)
  return 1
}
