/** Agents in the storage contract. */
import type { AuditEntry } from './audit.ts'

export type AgentStatus = 'Active' | 'Inactive' | 'Quarantined' | 'Revoked'
export type Role = 'agent' | 'reviewer' | 'auditor' | 'admin'

/** Whether an agent has a role for people, who decide, read everything or administer. */
export function isPrivileged({ roles }: { readonly roles: readonly Role[] }): boolean {
  return roles.some(role => role !== 'agent')
}

/** The stored part of a key with which an agent authenticates. */
export interface AgentKey {
  /** UUID. */
  readonly id: string
  readonly name: string
  /** SHA-256 of the key, hex. */
  readonly hash: string
  readonly createdAt: number
  readonly expiresAt: number | null
}

export interface KeyUse {
  readonly keyId: string
  readonly at: number
}

/** What is recorded of the requests of one agent, until a time. */
export interface AgentRecording {
  readonly mode: 'off' | 'shapes' | 'samples'
  /** Milliseconds since the epoch. */
  readonly until: number
}

/** An agent without its secret: what the registry holds in memory. */
export interface AgentRecord {
  /** UUID, lower case. */
  readonly id: string
  readonly name: string
  readonly ownerId: string
  readonly status: AgentStatus
  readonly policyName: string | null
  readonly roles: readonly Role[]
  /** Subject claim of the external identity bound to this agent. */
  readonly externalSubject: string | null
  readonly tags: Readonly<Record<string, string>>
  /** Trust in [0, 1] as it stood at `trustAt`. */
  readonly trustValue: number
  readonly trustAt: number
  readonly createdAt: number
  /** Its client secret is short or easy to guess. */
  readonly weakSecret: boolean
  /** Null: as Recording:Mode says. */
  readonly recording: AgentRecording | null
  /** In the order they were made. */
  readonly keys: readonly AgentKey[]
}

/** The fields of an agent that change after registration. */
export type AgentChange = Partial<
  Pick<
    AgentRecord,
    | 'status'
    | 'policyName'
    | 'roles'
    | 'externalSubject'
    | 'tags'
    | 'trustValue'
    | 'trustAt'
    | 'weakSecret'
    | 'recording'
  >
> & { readonly secretHash?: string }

/** Trust of an agent, and what is remembered to judge the next event. */
export interface AgentTrust extends Pick<AgentRecord, 'status' | 'trustValue' | 'trustAt'> {
  /** Opaque to the store. Null: nothing; so it is after `update` has set trust. */
  readonly standing: string | null
}

export interface AgentTable {
  /** In the order of registration. */
  all(): Promise<readonly AgentRecord[]>
  /** bcrypt hash of the agent's secret; undefined when there is no such agent. */
  secretHash(id: string): Promise<string | undefined>
  insert(agent: AgentRecord, secretHash: string, entry: AuditEntry): Promise<'stored' | 'exists' | 'subjectTaken'>
  /**
   * Changes an agent if it exists and its status is one of `from` (any, when absent).
   * The audit entry gets `before` and `after` of the changed fields, but never the hash. `lastAdmin`: nobody could administer
   * any more; of changes at the same time one gets this.
   */
  update(
    id: string,
    change: AgentChange,
    entry: AuditEntry,
    from?: readonly AgentStatus[],
  ): Promise<AgentRecord | 'notFound' | 'wrongState' | 'subjectTaken' | 'lastAdmin'>
  trust(id: string): Promise<AgentTrust | undefined>
  /** Replaces the trust `read`, with an entry like that of `update`. `stale`: the stored trust differs from `read`. */
  judge(
    id: string,
    read: AgentTrust,
    judged: AgentTrust,
    entry: AuditEntry,
  ): Promise<AgentRecord | 'notFound' | 'stale'>
  /** As `update`, and makes every token void. */
  reset(
    id: string,
    change: AgentChange,
    entry: AuditEntry,
  ): Promise<AgentRecord | 'notFound' | 'wrongState' | 'subjectTaken' | 'lastAdmin'>
  /** `lastAdmin` as in `update`. */
  remove(id: string, entry: AuditEntry): Promise<'removed' | 'notFound' | 'lastAdmin'>
  /** `exists`: the agent has a key with this id. `full`: it has `max` keys already. `wrongState`: it is revoked. */
  addKey(
    id: string,
    key: AgentKey,
    max: number,
    entry: AuditEntry,
  ): Promise<'stored' | 'notFound' | 'exists' | 'wrongState' | 'full'>
  /** False when there was no such key. */
  removeKey(id: string, keyId: string, entry: AuditEntry): Promise<boolean>
  keyUses(id: string): Promise<readonly KeyUse[]>
  /** Writes no audit entry, because nobody decided this change. */
  noteKeyUses(uses: readonly KeyUse[]): Promise<void>
}
