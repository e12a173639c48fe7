/** What was recorded of the requests that new rules match: for the audit trail, since a person saved them. */
import type { PolicyDocument, RuleDocument } from '../policy/language/format.ts'
import type { LanguageOptions } from '../policy/language/parse.ts'
import { leavesOf } from '../policy/lint/warning.ts'
import { type DraftSubject, matchedBy, recordedOf } from './draft.ts'
import { compileDocument } from './propose.ts'

/** What was recorded when a rule was saved. */
export interface RuleEvidence {
  readonly rule: string
  /** Requests that the rule matches for certain. */
  readonly count: number
  readonly days: number
  readonly firstAt: string | null
  readonly lastAt: string | null
  /** Ids of the shapes, those of most requests first; at most 50. */
  readonly shapes: readonly string[]
}

/** Agents whose recording is read for one policy. */
const maxAgents = 20
const maxShapes = 50

/** Rules that the policy before does not have so. */
function newRules({ rules }: PolicyDocument, before: PolicyDocument | undefined): readonly RuleDocument[] {
  const known = new Set(before?.rules.map(rule => JSON.stringify(rule)))
  return rules.filter(rule => rule.effect !== 'Deny' && !known.has(JSON.stringify(rule)))
}

const anyId = /[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}/g

/** Agents that a rule names: those that are proposed, or made from a request, name theirs. */
const agentsOf = ({ conditions }: RuleDocument): readonly string[] =>
  conditions.flatMap(one => {
    const text = JSON.stringify(one)
    return text.includes('"agent.id"') ? (text.match(anyId) ?? []) : []
  })

/** Ids of the agents whose recordings are evidence of what is new in a policy. */
export const namedAgents = (document: PolicyDocument, before: PolicyDocument | undefined): readonly string[] =>
  [...new Set(newRules(document, before).flatMap(agentsOf))].slice(0, maxAgents)

export function evidenceOf(
  document: PolicyDocument,
  before: PolicyDocument | undefined,
  subjects: readonly DraftSubject[],
  language: LanguageOptions,
): readonly RuleEvidence[] {
  const read = new Set(namedAgents(document, before))
  const rules = newRules(document, before).filter(rule => {
    const named = agentsOf(rule)
    return named.length > 0 && named.every(id => read.has(id))
  })
  const named = compileDocument(document, language).policy.rules.flatMap(rule => leavesOf(rule, ''))
  const fields = new Set(named.map(({ condition }) => condition.field))
  const recorded = new Map(subjects.map(subject => [subject.agent.id, recordedOf(subject, fields)]))
  return rules.map(rule => {
    const ofAgents = [...new Set(agentsOf(rule))].flatMap(id => recorded.get(id) ?? [])
    const matched = [...matchedBy(rule, ofAgents)].sort((one, other) => other.count - one.count)
    const timeOf = (at: number) => (matched.length === 0 ? null : new Date(at).toISOString())
    return {
      rule: rule.name,
      count: matched.reduce((sum, { count }) => sum + count, 0),
      days: new Set(matched.flatMap(({ days }) => days)).size,
      firstAt: timeOf(Math.min(...matched.map(({ firstAt }) => firstAt))),
      lastAt: timeOf(Math.max(...matched.map(({ lastAt }) => lastAt))),
      shapes: matched.slice(0, maxShapes).map(({ digest }) => digest),
    }
  })
}
