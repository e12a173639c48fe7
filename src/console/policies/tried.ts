import { useEffect, useState } from 'preact/hooks'
import { call, type Failure } from '../api.ts'
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
  /** Whether rules in shadow decide. */
  readonly withShadow: boolean
}

export interface Trial {
  readonly simulation: PolicySimulation | Failure
  /** Undefined: nothing is in force. */
  readonly difference: PolicyDiff | Failure | undefined
}

interface State {
  /** The last one that ended; it stays while the next one runs. */
  readonly trial: Trial | undefined
  /** Whether it is of what stands there now. */
  readonly isCurrent: boolean
}

/**
 * Tries the text on what was recorded whenever it rests. A change ends the run before it, here and in the gateway.
 *
 * @param isReady whether the text is a valid policy
 */
export function useTrial(text: string, isReady: boolean, { agentId, days, inForce, withShadow }: TrialTerms): State {
  const [state, setState] = useState<State>({ trial: undefined, isCurrent: false })
  useEffect(() => {
    setState(before => (before.isCurrent ? { ...before, isCurrent: false } : before))
    if (!isReady) return
    const leaving = new AbortController()
    const run = async () => {
      const trial = await tryOut(JSON.parse(text), { agentId, days, inForce, withShadow }, leaving.signal)
      if (!leaving.signal.aborted) setState({ trial, isCurrent: true })
    }
    const timer = setTimeout(() => void run(), restMs)
    return () => {
      clearTimeout(timer)
      leaving.abort()
    }
  }, [text, isReady, agentId, days, inForce, withShadow])
  return state
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
