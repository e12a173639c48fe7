/** Policies from what was recorded. */
import { type Refusal, refuse } from '../base/refusals.ts'
import { writeYaml } from '../config/write-yaml.ts'
import { type CompiledPolicy, compilePolicySync } from '../policy/evaluation/compile.ts'
import { walk } from '../policy/evaluation/walk.ts'
import type { Effect } from '../policy/language/model.ts'
import { type LanguageOptions, parsePolicy } from '../policy/language/parse.ts'
import { factsOf } from '../policy/lint/examined.ts'
import { exampleOf } from '../policy/propose/example.ts'
import { learn, type Proposal, type ProposeOptions } from '../policy/propose/learn.ts'
import { missesOf } from '../policy/propose/misses.ts'
import { narrow } from '../policy/propose/narrow.ts'
import { type CountedShape, readShape } from '../policy/propose/recorded.ts'
import { type Observed, type RecordedRequest, totalOf } from '../policy/propose/template.ts'
import { requestFromDescription } from '../policy/request/describe.ts'
import type { RecordedShapes } from '../storage/store.ts'
import { type ProposalReport, proposalYaml, tryProposal } from './proposal.ts'

export interface ProposalTerms extends ProposeOptions {
  readonly name: string
  /** Milliseconds since the epoch: only shapes that came in this time. */
  readonly since: number
  readonly until: number
}

/** Requests that were left out, by cause. */
export interface LeftOut {
  readonly cause: string
  readonly count: number
}

export interface MadePolicy extends ProposalReport {
  readonly proposal: Proposal
  readonly yaml: string
  /** A test file: an example of each pattern, and requests that are nearly one. */
  readonly tests: string
  readonly used: number
  readonly leftOut: readonly LeftOut[]
}

/** Patterns that have tests. */
const maxTested = 100

/** Shapes of all agents that one proposal may be made of. */
const maxShapes = 5_000

/** A policy from shapes. @param before document of the policy that is narrowed; undefined: a new one is learned */
export function makePolicy(
  all: readonly RecordedShapes[],
  terms: ProposalTerms,
  language: LanguageOptions,
  before: object | undefined,
): MadePolicy | Refusal {
  const counted = all.flatMap(({ shapes }) =>
    shapes.filter(one => one.lastAt >= terms.since && one.firstAt < terms.until),
  )
  if (counted.length > maxShapes)
    return refuse('invalid_body', `The agents have more than ${maxShapes} shapes: name fewer, or a shorter time.`)
  const recorded: RecordedRequest[] = []
  const eligible: RecordedRequest[] = []
  const causes = new Map<string, number>()
  for (const { shape, outcome, ...rest } of counted) {
    const one: CountedShape = { ...rest, shape: JSON.parse(shape), outcome: JSON.parse(outcome) }
    const read = readShape(one, terms.isExact)
    const cause = 'unfit' in read ? read.unfit : read.ineligible
    if (cause !== undefined) causes.set(cause, (causes.get(cause) ?? 0) + one.count)
    if ('unfit' in read) continue
    recorded.push(...read.requests)
    if (cause === undefined) eligible.push(...read.requests)
  }
  const observed: Observed = { recorded, eligible }
  const compiled = before && compileDocument(before, language)
  const proposal =
    compiled === undefined ? learn(terms.name, observed, terms) : narrow(compiled, observed, terms.isExact)
  if (proposal === undefined) return refuse('wrong_state', 'A priority of the policy is too large: it is doubled.')
  const report = tryProposal(proposal, observed, language, compiled)
  const used = totalOf(eligible)
  const leftOut = [...causes].map(([cause, count]) => ({ cause, count }))
  leftOut.sort((one, other) => other.count - one.count || (one.cause < other.cause ? -1 : 1))
  const tests = testsOf(proposal, eligible, language)
  return { ...report, proposal, yaml: proposalYaml(proposal), tests, used, leftOut }
}

/** A document that is valid: it was in force, or was tried. */
export function compileDocument(document: object, language: LanguageOptions): CompiledPolicy {
  const parsed = parsePolicy(document, language)
  if ('problems' in parsed) throw new Error('cannot happen: the policy was valid')
  return compilePolicySync(parsed.policy, language)
}

interface MadeTest {
  readonly name: string
  readonly agent: { readonly id: string }
  readonly request: object
  readonly expect: { readonly decision: Effect }
}

function testsOf(proposal: Proposal, eligible: readonly RecordedRequest[], language: LanguageOptions): string {
  const compiled = compileDocument(proposal.document, language)
  const tests: MadeTest[] = []
  for (const [index, { agentId, shape, counted }] of eligible.slice(0, maxTested).entries()) {
    const requests = [exampleOf(shape, counted?.fields), ...missesOf(shape, counted?.fields)]
    for (const [miss, request] of requests.entries()) {
      const made = requestFromDescription({ request, agent: { id: agentId } }, 0)
      if ('problem' in made) continue
      const decision = walk(compiled, factsOf(made)).effect
      // What the policy allows for another reason is no miss.
      if (miss > 0 && decision === 'Allow') continue
      const name = miss === 0 ? `recorded ${index + 1}` : `nearly ${index + 1}, ${miss}`
      tests.push({ name, agent: { id: agentId }, request, expect: { decision } })
    }
  }
  return writeYaml({ policy: proposal.document.name, tests }, 'tests', new Map())
}
