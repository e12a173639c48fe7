/** Grants in the storage contract. */
import type { AuditEntry } from './audit.ts'

/** Leave to pass without asking, given with an approval: bounded in time, uses and reach. */
export interface GrantRecord {
  /** UUID, lower case. */
  readonly id: string
  readonly agentId: string
  readonly policyName: string
  /** The Hitl rule that it answers; empty: the default of the policy. */
  readonly rule: string
  readonly method: string
  /** Scheme, host and port. */
  readonly origin: string
  /** Path, with `*` for one segment and `**` at the end for the rest. */
  readonly path: string
  /** What its requests are sent with (`identitiesOf`), never a value; empty: nothing of the gateway. */
  readonly credentials: string
  readonly maxUses: number
  readonly uses: number
  readonly hitlId: string
  readonly grantedBy: string
  readonly createdAt: number
  readonly expiresAt: number
}

/** An idempotency key that the use of a grant took. */
export interface TakenKey {
  readonly agentId: string
  readonly key: string
  readonly expiresAt: number
}

export interface GrantUse {
  readonly now: number
  /** Undefined when the request has none. */
  readonly key?: TakenKey | undefined
}

/** The request of an idempotency key: a held one, or (null) one that a grant let pass. */
export interface KeyHolder {
  readonly hitlId: string | null
}

export interface GrantFilter {
  readonly agentId?: string
  readonly after?: Pick<GrantRecord, 'createdAt' | 'id'> | undefined
  readonly limit?: number
}

export interface GrantTable {
  /** False when a grant has this id. */
  insert(grant: GrantRecord, entry: AuditEntry): Promise<boolean>
  /** Those of an agent that are unexpired at `now` and not used up, oldest first. */
  active(now: number, agentId: string): Promise<readonly GrantRecord[]>
  /** The same of all agents, for people. */
  list(now: number, filter?: GrantFilter): Promise<readonly GrantRecord[]>
  /**
   * Counts one use, in one conditional update, and takes the idempotency key; undefined when the grant is gone, expired
   * or used up. `keyUsed`: a grant let a request with this key pass. `keyHeld`: the key names a held request.
   */
  use(id: string, use: GrantUse, entry: AuditEntry): Promise<GrantRecord | 'keyUsed' | 'keyHeld' | undefined>
  /** Uncounts a use whose request was not sent, and frees its key. Without an entry when the grant is gone. */
  giveBack(id: string, key: TakenKey | undefined, entry: AuditEntry): Promise<void>
  /** Frees a key whose request was not sent; not if it expired and another request took it since. */
  releaseKey(key: TakenKey): Promise<void>
  /** False when there was no such grant. The entry contains the removed grant. */
  remove(id: string, entry: AuditEntry): Promise<boolean>
  /** Removes up to `limit` grants and keys that expired at `now` or are used up. Uses stay in the audit trail. */
  prune(now: number, limit: number): Promise<number>
}
