import { call, type Failure } from '../api.ts'
import { useAsync } from '../parts/async.ts'
import type { PolicyDiff, PolicySimulation } from '../types.ts'

/** How long a valid text must rest before it is tried, milliseconds: it was checked before. */
const restMs = 500
const dayMs = 86_400_000

export interface TrialTerms {
  /** Undefined: the agents that have the policy of this name. */
  readonly agentId: string | undefined
  /** Undefined: all that is kept. */
  readonly days: number | undefined
  /** Name of the policy in force; undefined: there is none. */
  readonly inForce: string | undefined
  readonly withShadow: boolean
}

export interface Trial {
  readonly simulation: PolicySimulation | Failure
  /** Undefined: nothing is in force. */
  readonly difference: PolicyDiff | Failure | undefined
}

/**
 * Tries the text on what was recorded whenever it rests. A change ends the run before it, here and in the gateway.
 *
 * @param isReady whether the text is a valid policy
 */
export function useTrial(text: string, isReady: boolean, { agentId, days, inForce, withShadow }: TrialTerms) {
  const terms = { agentId, days, inForce, withShadow }
  const run = isReady ? (leaving: AbortSignal) => tryOut(JSON.parse(text), terms, leaving) : undefined
  // The last trial that ended stays while the next one runs.
  const { last: trial, current } = useAsync(run, [text, isReady, ...Object.values(terms)], restMs)
  return { trial, isCurrent: current !== undefined }
}

interface Document {
  readonly rules?: readonly { readonly mode?: string }[]
}

/** The document with its rules in shadow in force. */
const enforced = (document: Document): Document => ({
  ...document,
  rules: (document.rules ?? []).map(({ mode: _, ...rule }) => rule),
})

async function tryOut(document: Document, terms: TrialTerms, signal: AbortSignal): Promise<Trial> {
  const { agentId, days, inForce, withShadow } = terms
  const policy = withShadow ? enforced(document) : document
  const order = {
    policy,
    ...(agentId === undefined ? {} : { agentIds: [agentId] }),
    ...(days === undefined ? {} : { since: new Date(Date.now() - days * dayMs).toISOString() }),
  }
  const [simulation, difference] = await Promise.all([
    call<PolicySimulation>('POST', '/policies/simulate', { body: order, signal }),
    inForce === undefined
      ? undefined
      : call<PolicyDiff>('POST', '/policies/diff', { body: { before: inForce, after: policy }, signal }),
  ])
  return {
    simulation: simulation.ok ? simulation.data : simulation.failure,
    difference: difference && (difference.ok ? difference.data : difference.failure),
  }
}
