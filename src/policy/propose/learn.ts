import type { PolicyDocument, RuleDocument } from '../language/format.ts'
import type { Effect } from '../language/model.ts'
import { type MarkedHost, markedHosts } from './hosts.ts'
import { judge } from './judge.ts'
import { type ProposedRule, rulesOf } from './rules.ts'
import { type Observed, templatesOf } from './template.ts'

export interface Proposal {
  readonly document: PolicyDocument
  /** The rules that were made, by name. */
  readonly made: ReadonlyMap<string, ProposedRule>
  /** Hosts that a person should look at. */
  readonly hosts: readonly MarkedHost[]
}

export interface ProposeOptions {
  /** Keeps every value of a path. */
  readonly isExact: boolean
  /** Allows what was approved often and never denied. */
  readonly promotes: boolean
  /** Effect of what was not recorded. */
  readonly unseen: Exclude<Effect, 'Allow'>
}

const ofLearning = { Allow: 20, Hitl: 10 } as const

/**
 * A policy from what was recorded alone. It allows a request only if an eligible one of the same agent was recorded with the same
 * origin, method, tool, model and words in the path, no further name, and values of the same classes elsewhere.
 */
export function learn(name: string, { recorded, eligible }: Observed, options: ProposeOptions): Proposal {
  const hosts = markedHosts(eligible)
  const judged = judge(templatesOf(eligible, options.isExact), recorded, { ...options, hosts })
  const made = new Map<string, ProposedRule>()
  const rules = rulesOf(judged).map(rule => {
    const ruleName = `${rule.subject}-${made.size + 1}`
    made.set(ruleName, rule)
    return documentOf(rule, { name: ruleName, priority: ofLearning[rule.effect], reason: rule.cause })
  })
  const head = { name, description: 'Proposed from what was recorded', owner: '', default: options.unseen }
  return { document: { ...head, rules }, made, hosts: [...hosts.values()] }
}

type RuleHead = Pick<RuleDocument, 'name' | 'priority'> & Partial<RuleDocument>

/** A proposed rule as a policy has it. */
export function documentOf(
  { effect, conditions }: Pick<ProposedRule, 'effect' | 'conditions'>,
  head: RuleHead,
): RuleDocument {
  const { reason = '', ...rest } = head
  return { effect, ...rest, ...(reason === '' ? {} : { reason }), conditions }
}
