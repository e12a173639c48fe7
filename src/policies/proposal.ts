import { writeYaml } from '../config/write-yaml.ts'
import { type CompiledPolicy, compilePolicySync } from '../policy/evaluation/compile.ts'
import { walk } from '../policy/evaluation/walk.ts'
import { stricter } from '../policy/language/model.ts'
import { type LanguageOptions, parsePolicy } from '../policy/language/parse.ts'
import { factsOf } from '../policy/lint/examined.ts'
import { type LintWarning, lintPolicy } from '../policy/lint/lint.ts'
import type { BodyValues } from '../policy/propose/field-values.ts'
import type { Proposal } from '../policy/propose/learn.ts'
import type { ProposedRule } from '../policy/propose/rules.ts'
import { type Observed, totalOf } from '../policy/propose/template.ts'

/** What a proposal makes of the requests that it was made from. */
export interface ProposalReport {
  readonly warnings: readonly LintWarning[]
  /** Eligible requests that pass, and that wait for a person. */
  readonly allowed: number
  readonly held: number
}

/**
 * Tries a proposal on the requests that it was made from.
 *
 * @param before the policy that it narrows
 * @throws Error for a proposal that is not valid, denies what was recorded, or is milder than the policy before
 */
export function tryProposal(
  { document }: Proposal,
  { recorded, eligible }: Observed,
  language: LanguageOptions,
  before?: CompiledPolicy,
): ProposalReport {
  const parsed = parsePolicy(document, language)
  if ('problems' in parsed) {
    const [{ path, message } = { path: '', message: '' }] = parsed.problems
    throw new Error(`cannot happen: the proposal is not valid: ${path}: ${message}`)
  }
  const after = compilePolicySync(parsed.policy, language)
  const effects = new Map(recorded.map(one => [one, walk(after, factsOf(one.request)).effect]))
  for (const [{ request }, effect] of effects) {
    const former = before === undefined ? effect : walk(before, factsOf(request)).effect
    if (stricter(former, effect) !== effect)
      throw new Error(`cannot happen: the proposal allows more: ${request.head.url}`)
  }
  const of = (wanted: string) => totalOf(eligible.filter(one => effects.get(one) === wanted))
  if (before === undefined && of('Deny') > 0) throw new Error('cannot happen: the proposal denies what was recorded')
  return {
    warnings: lintPolicy(parsed.policy, language).warnings,
    allowed: of('Allow'),
    held: of('Hitl'),
  }
}

/** The policy as YAML, with the evidence of each rule in a comment. No text of an agent is in a comment. */
export function proposalYaml({ document, made }: Proposal): string {
  const comments = new Map<number, string>()
  for (const [place, { name }] of document.rules.entries()) {
    const found = made.get(name)
    if (found !== undefined) comments.set(place, evidenceComment(found))
  }
  return writeYaml(document, 'rules', comments)
}

function evidenceComment({ evidence, agents, conditions }: ProposedRule): string {
  const { count, days, first, last, approved, fields } = evidence
  const day = (at: number) => new Date(at).toISOString().slice(0, 10)
  const people = approved === 0 ? '' : `, ${approved} approved by people`
  return `seen ${count} times on ${days} days, ${day(first)} to ${day(last)}, by ${agents} agents${people}${numbersOf(fields, conditions)}`
}

/** How large numbers were, by the place of the field among the names that the rule allows. */
function numbersOf(fields: BodyValues, conditions: ProposedRule['conditions']): string {
  const names = conditions.findLast(({ field }) => field.endsWith('.@keys'))?.value ?? []
  return [names]
    .flat()
    .map((name, place) => {
      const value = Object.entries(fields).find(([field]) => field.endsWith(`.${name}`))?.[1]
      return value === undefined || 'texts' in value ? '' : `; name ${place + 1}: ${value.min} to ${value.max}`
    })
    .join('')
}
