import { type Divided, doAtOnce, doInTurns, rulesPerTurn } from '../turns/turns.ts'
import { readChat } from './chat.ts'
import { credentialHeaders, type Scope } from './condition.ts'
import { isTimeZone, Zone } from './fields/zone.ts'
import { Keys, wordOf } from './keys.ts'
import {
  type Effect,
  effects,
  limits,
  type OnUnreadable,
  onUnreadables,
  type Policy,
  type ReviewTerms,
  type Rule,
  usualTerms,
} from './model.ts'
import { parseConditions } from './parse-condition.ts'
import { ConditionError, type PolicyProblem, Problems } from './problems.ts'
import { readSilence } from './silence.ts'
import { compileTitle } from './title.ts'

/** Limits of the language that a configuration sets. */
export interface LanguageOptions {
  /** Header fields beside Authorization and Cookie whose values rules may not read: the gateway's own token header. */
  readonly hiddenHeaders?: readonly string[]
  /** Longest `waitSeconds` of a rule: HumanInTheLoop:TimeoutSeconds. */
  readonly maxWaitSeconds?: number
  /** Names of the budgets; absent: not known, so that rules may name any. */
  readonly budgets?: ReadonlySet<string>
  /** Names of the credentials; absent: not known, so that rules may name any. */
  readonly credentials?: ReadonlySet<string>
}

export const policyKeys = ['name', 'description', 'owner', 'default', 'timezone', 'onUnreadable', 'shadowOf', 'rules']
/** Keys that `GET /policies/{name}` adds. They are ignored, so that its answer can be sent back. */
const shownKeys = ['policyName', 'createdOn', 'version', 'ruleCount', 'source', 'hits', 'shadow']
export const ruleKeys = [
  'name',
  'priority',
  'effect',
  'mode',
  'onUnreadable',
  'riskExempt',
  'budget',
  'credential',
  'reason',
  'title',
  'approvals',
  'waitSeconds',
  'whenUndecided',
  'chatApproval',
  'chatFields',
  'silence',
  'conditions',
]

export type Parsed = { readonly policy: Policy } | { readonly problems: readonly PolicyProblem[] }

/**
 * Reads a policy from a document: the shape of the specification or the authoring form (numbers, booleans and lists as
 * values, effects in any letter case). Reports every mistake at once; never throws.
 */
export function parsePolicy(document: unknown, options: LanguageOptions = {}): Parsed {
  return doAtOnce(parse(document, options))
}

/** The same, letting other work run in between: a large policy takes a while. */
export function parsePolicyInTurns(document: unknown, options: LanguageOptions = {}): Promise<Parsed> {
  return doInTurns(parse(document, options))
}

/** Lower-case names of all header fields whose values are hidden from rules. */
export function hiddenHeaders(names: readonly string[] = []): ReadonlySet<string> {
  return new Set([...credentialHeaders, ...names.map(name => name.toLowerCase())])
}

/** State while the rules of one policy are read. */
interface ParseContext {
  readonly problems: Problems
  readonly scope: Scope
  readonly maxWaitSeconds: number
}

function* parse(document: unknown, options: LanguageOptions): Divided<Parsed> {
  const problems = new Problems()
  const keys = Keys.of(document, { path: '', known: policyKeys, ignored: shownKeys }, problems)
  if (keys === undefined) {
    problems.add('E_CONDITION', '', 'a policy must be a map with name and rules')
    return { problems: problems.found }
  }
  const head = readHead(keys, problems)
  const zone = new Zone(isTimeZone(head.timezone) ? head.timezone : 'UTC')
  const { maxWaitSeconds = limits.waitSeconds } = options
  const reading = { problems, scope: { zone, hiddenHeaders: hiddenHeaders(options.hiddenHeaders) }, maxWaitSeconds }
  const rules = new Map<string, Rule>()
  for (const [index, entry] of readEntries(keys, problems).entries()) {
    if (index > 0 && index % rulesPerTurn === 0) yield
    const path = `rules[${index}]`
    const rule = readRule(entry, path, reading)
    if (rule === undefined) continue
    if (rule.name !== '' && rules.has(rule.name)) {
      const message = `names must be unique: another rule is named ${JSON.stringify(rule.name)}`
      problems.add('E_DUPLICATE', `${path}.name`, message)
    }
    rules.set(rule.name, rule)
  }
  return problems.found.length > 0 ? { problems: problems.found } : { policy: { ...head, rules: [...rules.values()] } }
}

function readRule(entry: unknown, path: string, { problems, scope, maxWaitSeconds }: ParseContext): Rule | undefined {
  const keys = Keys.of(entry, { path, known: ruleKeys, ignored: [] }, problems)
  if (keys === undefined) {
    problems.add('E_CONDITION', path, 'a rule must be a map with name, effect and conditions')
    return undefined
  }
  const effect = readEffect(keys, 'effect')
  const riskExempt = keys.flag('riskExempt')
  if (riskExempt && effect !== 'Allow') keys.problem('E_VALUE', 'riskExempt', 'riskExempt must be on an Allow rule')
  return {
    name: readRuleName(keys),
    priority: readPriority(keys),
    effect,
    mode: keys.choice('mode', ['enforce', 'shadow'], 'enforce'),
    onUnreadable: readOnUnreadable(keys),
    riskExempt,
    budget: readBudget(keys, effect),
    credential: readCredential(keys, effect),
    reason: keys.text('reason', ''),
    title: readTitle(keys, effect, scope),
    ...readTerms(keys, effect, maxWaitSeconds),
    ...readChat(keys, effect, scope),
    silence: readSilence(keys, problems),
    conditions: parseConditions(keys.get('conditions'), keys.at('conditions'), problems, scope),
  }
}

function readHead(keys: Keys, problems: Problems): Omit<Policy, 'rules'> {
  const timezone = keys.text('timezone', 'UTC')
  if (!isTimeZone(timezone))
    keys.problem('E_VALUE', 'timezone', `timezone must be an IANA name such as Europe/Berlin, not ${shown(timezone)}`)
  return {
    name: readName(keys, problems),
    description: keys.text('description', ''),
    owner: keys.text('owner', ''),
    default: readEffect(keys, 'default', 'Deny'),
    timezone,
    onUnreadable: readOnUnreadable(keys) ?? 'failSafe',
    shadowOf: readShadowOf(keys, problems),
  }
}

function shown(value: unknown): string {
  return typeof value === 'string' ? JSON.stringify(value.slice(0, 64)) : typeof value
}

const nameGrammar = /^[A-Za-z0-9._-]{1,128}$/

function readName(keys: Keys, problems: Problems): string {
  const name = keys.get('name')
  if (typeof name === 'string' && nameGrammar.test(name)) return name
  const must = 'a policy must have a name of 1 to 128 letters, digits, dots, underscores or dashes'
  problems.add('E_NAME', keys.at('name'), must)
  return ''
}

function readShadowOf(keys: Keys, problems: Problems): string | null {
  const name = keys.get('shadowOf')
  if (name === undefined || name === null) return null
  if (typeof name === 'string' && nameGrammar.test(name)) return name
  problems.add('E_NAME', keys.at('shadowOf'), 'shadowOf must be the name of a policy')
  return null
}

function readEffect(keys: Keys, key: string, standard?: Effect): Effect {
  const given = keys.get(key)
  const value = given === undefined ? standard : given
  const effect = typeof value === 'string' ? wordOf(value, effects) : undefined
  if (effect !== undefined) return effect
  const instead = value === undefined ? '' : `, not ${shown(value)}`
  keys.problem('E_EFFECT', key, `${key} must be Allow, Deny or Hitl${instead}`)
  return 'Deny'
}

function readEntries(keys: Keys, problems: Problems): readonly unknown[] {
  const entries = keys.get('rules') ?? []
  if (!Array.isArray(entries)) {
    problems.add('E_CONDITIONS', keys.at('rules'), 'rules must be a list')
    return []
  }
  if (entries.length <= limits.rules) return entries
  problems.add('E_LIMIT', keys.at('rules'), `a policy must have at most ${limits.rules} rules`)
  return []
}

function readRuleName(keys: Keys): string {
  const name = keys.get('name')
  if (typeof name === 'string' && /^[^\p{Cc}]{1,128}$/u.test(name)) return name
  keys.problem('E_NAME', 'name', 'a rule must have a name of 1 to 128 characters')
  return ''
}

function readPriority(keys: Keys): number {
  const value = keys.get('priority') ?? 0
  // Adding zero turns -0 into 0.
  if (typeof value === 'number' && Number.isSafeInteger(value)) return value + 0
  keys.problem('E_PRIORITY', 'priority', 'priority must be an integer')
  return 0
}

function readOnUnreadable(keys: Keys): OnUnreadable | null {
  return (keys.get('onUnreadable') ?? null) === null ? null : (keys.oneOf('onUnreadable', onUnreadables) ?? null)
}

const budgetGrammar = /^[a-z0-9-]{0,40}$/

function readBudget(keys: Keys, effect: Effect): string {
  const budget = keys.text('budget', '')
  if (!budgetGrammar.test(budget)) keys.problem('E_VALUE', 'budget', 'budget must be the name of a budget')
  if (budget !== '' && effect !== 'Allow') keys.problem('E_VALUE', 'budget', 'budget must be on an Allow rule')
  return budget
}

const credentialGrammar = /^[a-z0-9-]{0,64}$/

function readCredential(keys: Keys, effect: Effect): string {
  const name = keys.text('credential', '')
  if (!credentialGrammar.test(name)) {
    keys.problem('E_VALUE', 'credential', 'credential must be the name of a credential')
  }
  if (name !== '' && effect === 'Deny') {
    keys.problem('E_VALUE', 'credential', 'credential must be on an Allow or Hitl rule')
  }
  return name
}

function readTitle(keys: Keys, effect: Effect, scope: Scope): string {
  const title = keys.text('title', '')
  if (title !== '' && effect !== 'Hitl') keys.problem('E_VALUE', 'title', 'title must be on a Hitl rule')
  try {
    compileTitle(title, scope)
  } catch (error) {
    if (!(error instanceof ConditionError)) throw error
    keys.problem(error.code, 'title', error.message)
  }
  return title
}

function readTerms(keys: Keys, effect: Effect, maxWait: number): ReviewTerms {
  const terms: ReviewTerms = {
    approvals: readInteger(keys, 'approvals', { min: 1, max: limits.approvals }) ?? usualTerms.approvals,
    waitSeconds: readInteger(keys, 'waitSeconds', { min: 0, max: maxWait }),
    whenUndecided: keys.choice('whenUndecided', ['accepted', 'refused'], usualTerms.whenUndecided),
  }
  if (effect === 'Hitl') return terms
  for (const key of ['approvals', 'waitSeconds', 'whenUndecided'] as const) {
    if (terms[key] !== usualTerms[key]) keys.problem('E_VALUE', key, `${key} must be on a Hitl rule`)
  }
  return usualTerms
}

function readInteger(keys: Keys, key: string, { min, max }: { min: number; max: number }): number | null {
  const value = keys.get(key) ?? null
  if (value === null) return null
  if (typeof value === 'number' && Number.isInteger(value) && value >= min && value <= max) return value
  keys.problem('E_VALUE', key, `${key} must be an integer from ${min} to ${max}`)
  return null
}
