import type { RefusalCode } from '../base/refusal-kinds.ts'
import { type Refusal, refuse } from '../base/refusals.ts'
import type { AgentRecording } from '../storage/agents.ts'
import type { AgentRecord, AgentStatus } from '../storage/store.ts'
import { trustNow } from './trust.ts'

export type Transition = 'activate' | 'deactivate' | 'quarantine' | 'liftQuarantine' | 'revoke'

/**
 * Which statuses a transition starts from, and where it leads. Nothing leads out of Revoked. A quarantined agent
 * cannot be deactivated: activating it afterwards would lift the quarantine by another name.
 */
export const transitions: Readonly<Record<Transition, { from: readonly AgentStatus[]; to: AgentStatus }>> = {
  activate: { from: ['Inactive'], to: 'Active' },
  deactivate: { from: ['Active'], to: 'Inactive' },
  quarantine: { from: ['Active', 'Inactive'], to: 'Quarantined' },
  liftQuarantine: { from: ['Quarantined'], to: 'Active' },
  revoke: { from: ['Active', 'Inactive', 'Quarantined'], to: 'Revoked' },
}

const statusRefusals: Readonly<Record<Exclude<AgentStatus, 'Active'>, RefusalCode>> = {
  Inactive: 'agent_inactive',
  Quarantined: 'agent_quarantined',
  Revoked: 'agent_revoked',
}

/** Why an agent of this status may not act (403); undefined for Active. */
export function refuseStatus(status: AgentStatus): Refusal | undefined {
  return status === 'Active' ? undefined : refuse(statusRefusals[status])
}

/** Why an agent may not act now: it is no longer known (401), or not active (403). */
export function agentProblem(agent: AgentRecord | undefined): Refusal | undefined {
  return agent === undefined ? refuse('unauthenticated') : refuseStatus(agent.status)
}

/** An agent in lists (spec 4.2). */
export interface AgentSummary extends Pick<AgentRecord, 'id' | 'name' | 'ownerId' | 'status' | 'policyName'> {
  /** Live value in [0, 1], rounded to four decimals. */
  readonly trustScore: number
}

export interface AgentDetail extends AgentSummary, Pick<AgentRecord, 'roles' | 'externalSubject' | 'tags'> {
  /** ISO 8601, UTC. */
  readonly createdAt: string
  /** What is recorded of its requests until a time; null: as Recording:Mode says. */
  readonly recording: { readonly mode: AgentRecording['mode']; readonly until: string } | null
}

/** The live trust score of an agent at `now` (milliseconds since the epoch), rounded to four decimals. */
export function trustScore(agent: AgentRecord, now: number): number {
  return Math.round(trustNow({ value: agent.trustValue, at: agent.trustAt }, now) * 10_000) / 10_000
}

export function summarise(agent: AgentRecord, now: number): AgentSummary {
  const { id, name, ownerId, status, policyName } = agent
  return { id, name, ownerId, status, policyName, trustScore: trustScore(agent, now) }
}

export function detail(agent: AgentRecord, now: number): AgentDetail {
  const { roles, externalSubject, tags, createdAt, recording } = agent
  return {
    ...{ ...summarise(agent, now), roles, externalSubject, tags, createdAt: new Date(createdAt).toISOString() },
    recording:
      recording === null || recording.until <= now
        ? null
        : { mode: recording.mode, until: new Date(recording.until).toISOString() },
  }
}
