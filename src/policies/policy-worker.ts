/** The thread for long work on policies: requests are served meanwhile. */
import { parentPort } from 'node:worker_threads'
import type { Refusal } from '../base/refusals.ts'
import { differenceOf, type PolicyDifference } from '../policy/diff/difference.ts'
import type { PolicyDocument } from '../policy/language/format.ts'
import type { LanguageOptions } from '../policy/language/parse.ts'
import { lintPolicy } from '../policy/lint/lint.ts'
import type { LintWarning } from '../policy/lint/warning.ts'
import { openLink } from '../runtime/link.ts'
import { giveWay } from '../runtime/priority.ts'
import type { RecordedShapes, ShapeCount } from '../storage/store.ts'
import { type DraftOrder, type DraftSubject, type MadeDraft, makeDraft } from './draft.ts'
import { type Drift, driftOf, type RuleUsage } from './drift.ts'
import { evidenceOf, type RuleEvidence } from './evidence.ts'
import { compileDocument, type MadePolicy, makePolicy, type ProposalTerms } from './propose.ts'
import { type SimulatedAgent, type Simulation, simulate } from './simulate.ts'

export interface PolicyWork {
  propose(
    shapes: readonly RecordedShapes[],
    terms: ProposalTerms,
    language: LanguageOptions,
    before: object | undefined,
  ): Promise<MadePolicy | Refusal>
  /** @param after document of the policy that is tried: a valid one */
  simulate(agents: readonly SimulatedAgent[], after: object, language: LanguageOptions): Promise<Simulation>
  /** Warnings about a valid policy. @param now milliseconds since the epoch */
  lint(policy: object, language: LanguageOptions, now: number): Promise<readonly LintWarning[]>
  /** Documents of valid policies. */
  compare(before: object, after: object, language: LanguageOptions): Promise<PolicyDifference>
  draft(order: DraftOrder, subject: DraftSubject, language: LanguageOptions): Promise<MadeDraft | Refusal>
  /** What was recorded of the requests that the rules match which `before` does not have. */
  evidence(
    policy: PolicyDocument,
    before: PolicyDocument | undefined,
    subjects: readonly DraftSubject[],
    language: LanguageOptions,
  ): Promise<readonly RuleEvidence[]>
  drift(policy: PolicyDocument, counts: readonly ShapeCount[], usage: readonly RuleUsage[], now: number): Promise<Drift>
}

const port = parentPort
if (port === null) throw new Error('cannot happen: policy-worker.ts runs as a worker only')

giveWay()
openLink<PolicyWork, object>(port, {
  propose: makePolicy,
  simulate,
  lint: (policy, language, now) => lintPolicy(compileDocument(policy, language).policy, { ...language, now }).warnings,
  compare: (before, after, language) =>
    differenceOf(compileDocument(before, language), compileDocument(after, language)),
  draft: makeDraft,
  evidence: evidenceOf,
  drift: driftOf,
})
