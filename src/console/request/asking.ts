import { useEffect } from 'preact/hooks'
import { onEvent } from '../live.ts'
import { type Reading, useRead } from '../parts/read.ts'
import type { AgentActivity, AgentStatus, HitlSummary } from '../types.ts'

/** How often the agent of a request that waits is read again, milliseconds: only one quarantine has an event. */
const againMs = 10_000

/** The agent that asks, as it is now: read once for all parts of the page, and again while the request waits. */
export function useAsking({ agentId, status }: Pick<HitlSummary, 'agentId' | 'status'>): Reading<AgentActivity> {
  const reading = useRead<AgentActivity>(`/agents/${agentId}/activity`, status === 'Pending' ? againMs : undefined)
  const { again } = reading
  useEffect(
    () => onEvent(({ type, data }) => type === 'quarantined' && data['agentId'] === agentId && again()),
    [agentId],
  )
  return reading
}

type Barred = Exclude<AgentStatus, 'Active'> | 'Gone'

/** Why nothing of an agent can be sent; undefined when it can, or while that is not known: the gateway checks it, too. */
export function barOf({ data, failure }: Reading<AgentActivity>): Barred | undefined {
  if (failure?.status === 404) return 'Gone'
  const status = data?.agent.status
  return status === 'Active' ? undefined : status
}

/** Why such requests cannot be approved, and the next step. */
export function barText(barred: Barred, count = 1): string {
  const [these, they, them] = count === 1 ? ['this request', 'It', 'it'] : ['these requests', 'They', 'them']
  const until = (what: string) => `so ${these} cannot be approved until an admin ${what}. ${they} can be denied.`
  const never = `so ${these} can never be approved. Deny ${them}, or let ${them} expire.`
  const texts: Readonly<Record<Barred, string>> = {
    Quarantined: `The agent is quarantined, ${until('lifts the quarantine')}`,
    Inactive: `The agent is inactive, ${until('activates the agent')}`,
    Revoked: `The agent is revoked for good, ${never}`,
    Gone: `The agent is not registered any more, ${never}`,
  }
  return texts[barred]
}
