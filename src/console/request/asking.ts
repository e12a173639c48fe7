import { useEffect } from 'preact/hooks'
import { onEvent } from '../live.ts'
import { type Reading, useRead } from '../parts/read.ts'
import type { AgentActivity, AgentStatus, HitlRequest } from '../types.ts'

/** How often the agent of a request that waits is read again, milliseconds: only one quarantine has an event. */
const againMs = 10_000

/** The agent that asks, as it is now: read once for all parts of the page, and again while the request waits. */
export function useAsking({ agentId, status }: HitlRequest): Reading<AgentActivity> {
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

/** Why such a request cannot be approved, and the next step. */
export const barTexts: Readonly<Record<Barred, string>> = {
  Quarantined:
    'The agent is quarantined, so this request cannot be approved until an admin lifts the quarantine. It can be denied.',
  Inactive:
    'The agent is inactive, so this request cannot be approved until an admin activates the agent. It can be denied.',
  Revoked: 'The agent is revoked for good, so this request can never be approved. Deny it, or let it expire.',
  Gone: 'The agent is not registered any more, so this request can never be approved. Deny it, or let it expire.',
}
