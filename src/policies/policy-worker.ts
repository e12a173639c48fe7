/** The thread for long work on policies: requests are served meanwhile. */
import { parentPort } from 'node:worker_threads'
import type { Refusal } from '../base/refusals.ts'
import type { LanguageOptions } from '../policy/language/parse.ts'
import { openLink } from '../runtime/link.ts'
import { giveWay } from '../runtime/priority.ts'
import type { RecordedShapes } from '../storage/store.ts'
import { type MadePolicy, makePolicy, type ProposalTerms } from './propose.ts'

export interface PolicyWork {
  propose(
    shapes: readonly RecordedShapes[],
    terms: ProposalTerms,
    language: LanguageOptions,
    before: object | undefined,
  ): Promise<MadePolicy | Refusal>
}

const port = parentPort
if (port === null) throw new Error('cannot happen: policy-worker.ts runs as a worker only')

giveWay()
openLink<PolicyWork, object>(port, { propose: makePolicy })
