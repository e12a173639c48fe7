import { nextTurn, rulesPerTurn, type Turns } from '../turns/turns.ts'
import { credentialHeaders, type Scope } from './condition.ts'
import { isTimeZone, Zone } from './fields/zone.ts'
import { Keys } from './keys.ts'
import {
  type Effect,
  effects,
  limits,
  type OnUnreadable,
  type Policy,
  type ReviewTerms,
  type Rule,
  usualTerms,
} from './model.ts'
import { parseConditions } from './parse-condition.ts'
import { type PolicyProblem, Problems } from './problems.ts'

export interface ParseOptions {
  /** Header fields beside Authorization and Cookie whose values rules may not read: the gateway's own token header. */
  readonly hiddenHeaders?: readonly string[]
  /** Longest `waitSeconds` of a rule: HumanInTheLoop:TimeoutSeconds. */
  readonly maxWaitSeconds?: number
}

export const policyKeys = ['name', 'description', 'owner', 'default', 'timezone', 'onUnreadable', 'shadowOf', 'rules']
/** What `GET /policies/{name}` adds; ignored, so that its answer can be sent back. */
const shownKeys = ['policyName', 'createdOn', 'version', 'ruleCount', 'source']
export const ruleKeys = [
  'name',
  'priority',
  'effect',
  'mode',
  'riskExempt',
  'reason',
  'approvals',
  'waitSeconds',
  'whenUndecided',
  'conditions',
]

export type Parsed = { readonly policy: Policy } | { readonly problems: readonly PolicyProblem[] }

/**
 * A policy from a document: the shape of the specification or the authoring form (numbers, booleans and lists as
 * values, effects in any letter case). Gives every mistake at once; never throws.
 */
export function parsePolicy(document: unknown, options: ParseOptions = {}): Parsed {
  const reader = new PolicyReader(document, options)
  reader.step(Number.POSITIVE_INFINITY)
  return reader.finish()
}

/** The same, letting other work run in between: a large policy takes a while. */
export async function parsePolicyInTurns(document: unknown, options: ParseOptions & Turns = {}): Promise<Parsed> {
  const pause = options.pause ?? nextTurn
  const reader = new PolicyReader(document, options)
  while (reader.step(rulesPerTurn)) await pause()
  return reader.finish()
}

/** Lower-case names of all header fields whose values are hidden from rules. */
export function hiddenHeaders(names: readonly string[] = []): ReadonlySet<string> {
  return new Set([...credentialHeaders, ...names.map(name => name.toLowerCase())])
}

/** Reads a document rule by rule. */
class PolicyReader {
  readonly #problems = new Problems()
  readonly #head: Omit<Policy, 'rules'> | undefined
  readonly #entries: readonly unknown[]
  readonly #scope: Scope
  readonly #maxWait: number
  readonly #names = new Set<string>()
  readonly #rules: Rule[] = []
  #next = 0

  constructor(document: unknown, options: ParseOptions) {
    const keys = Keys.of(document, { path: '', known: policyKeys, ignored: shownKeys }, this.#problems)
    if (keys === undefined) this.#problems.add('E_CONDITION', '', 'a policy must be a map with name and rules')
    this.#head = keys && readHead(keys, this.#problems)
    this.#entries = keys === undefined ? [] : readEntries(keys, this.#problems)
    this.#maxWait = options.maxWaitSeconds ?? limits.waitSeconds
    const hidden = hiddenHeaders(options.hiddenHeaders)
    this.#scope = { zone: new Zone(knownZone(this.#head?.timezone)), hiddenHeaders: hidden }
  }

  /** Reads up to `count` more rules; false when there are none left. */
  step(count: number): boolean {
    const end = Math.min(this.#next + count, this.#entries.length)
    for (; this.#next < end; this.#next++) this.#read(this.#entries[this.#next], `rules[${this.#next}]`)
    return this.#next < this.#entries.length
  }

  #read(entry: unknown, path: string): void {
    const keys = Keys.of(entry, { path, known: ruleKeys, ignored: [] }, this.#problems)
    if (keys === undefined)
      this.#problems.add('E_CONDITION', path, 'a rule must be a map with name, effect and conditions')
    const rule = keys && this.#readRule(keys)
    if (rule === undefined) return
    if (rule.name !== '' && this.#names.has(rule.name)) {
      this.#problems.add(
        'E_DUPLICATE',
        `${path}.name`,
        `names must be unique: another rule is named ${JSON.stringify(rule.name)}`,
      )
    }
    this.#names.add(rule.name)
    this.#rules.push(rule)
  }

  #readRule(keys: Keys): Rule {
    const effect = readEffect(keys, 'effect')
    const riskExempt = keys.flag('riskExempt')
    if (riskExempt && effect !== 'Allow') keys.problem('E_VALUE', 'riskExempt', 'riskExempt must be on an Allow rule')
    return {
      name: readRuleName(keys),
      priority: readPriority(keys),
      effect,
      mode: keys.choice('mode', ['enforce', 'shadow'], 'enforce') as Rule['mode'],
      riskExempt,
      reason: keys.text('reason', ''),
      ...readTerms(keys, effect, this.#maxWait),
      conditions: parseConditions(keys.get('conditions'), keys.at('conditions'), this.#problems, this.#scope),
    }
  }

  finish(): Parsed {
    const problems = this.#problems.found
    if (this.#head === undefined || problems.length > 0) return { problems }
    return { policy: { ...this.#head, rules: this.#rules } }
  }
}

function knownZone(name: string | undefined): string {
  return name !== undefined && isTimeZone(name) ? name : 'UTC'
}

function readHead(keys: Keys, problems: Problems): Omit<Policy, 'rules'> {
  const timezone = keys.text('timezone', 'UTC')
  if (!isTimeZone(timezone)) keys.problem('E_VALUE', 'timezone', `unknown time zone ${shown(timezone)}`)
  return {
    name: readName(keys, problems),
    description: keys.text('description', ''),
    owner: keys.text('owner', ''),
    default: readEffect(keys, 'default', 'Deny'),
    timezone,
    onUnreadable: keys.choice('onUnreadable', ['failSafe', 'match', 'noMatch'], 'failSafe') as OnUnreadable,
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
  const cause = name === undefined ? 'a policy needs a name' : 'bad policy name'
  problems.add('E_NAME', keys.at('name'), `${cause}: 1 to 128 letters, digits, dots, underscores or dashes`)
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
  const value = keys.get(key)
  if (value === undefined && standard !== undefined) return standard
  const effect = typeof value === 'string' && effects.find(known => known.toLowerCase() === value.toLowerCase())
  if (effect !== undefined && effect !== false) return effect
  const cause = value === undefined ? 'missing effect' : `unknown effect ${shown(value)}`
  keys.problem('E_EFFECT', key, `${cause}: Allow, Deny or Hitl`)
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

function readTerms(keys: Keys, effect: Effect, maxWait: number): ReviewTerms {
  const terms: ReviewTerms = {
    approvals: readInteger(keys, 'approvals', { min: 1, max: limits.approvals }) ?? usualTerms.approvals,
    waitSeconds: readInteger(keys, 'waitSeconds', { min: 0, max: maxWait }),
    whenUndecided: keys.choice(
      'whenUndecided',
      ['accepted', 'refused'],
      usualTerms.whenUndecided,
    ) as ReviewTerms['whenUndecided'],
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
