/** Accounts of people at services of chat, in the storage contract. */
import type { AuditEntry } from './audit.ts'

/** An account, by the ids that the service gives. Names and addresses of e-mail prove nothing. */
export interface ChatIdentity {
  readonly provider: 'slack'
  readonly team: string
  readonly user: string
}

export interface IdentityTable {
  /** Of one agent, in the order of provider, team and user. */
  of(agentId: string): Promise<readonly ChatIdentity[]>
  holder(identity: ChatIdentity): Promise<string | undefined>
  /** Replaces all of an agent. The entry gets `before` and `after`. `taken`: another agent has one of them. */
  set(agentId: string, identities: readonly ChatIdentity[], entry: AuditEntry): Promise<'stored' | 'notFound' | 'taken'>
  /** Adds one, and counts one that is there already as stored. `full`: the agent has `max`. */
  add(
    agentId: string,
    identity: ChatIdentity,
    max: number,
    entry: AuditEntry,
  ): Promise<'stored' | 'notFound' | 'taken' | 'full'>
}
