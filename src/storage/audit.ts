/** The audit trail in the storage contract, and pages of it. */
export interface Page {
  readonly page: number
  readonly pageSize: number
}

export interface Paged<T> {
  readonly items: readonly T[]
  readonly totalCount: number
}

/**
 * A page of a list that grows for years. Only the newest 5,000 rows that the first of the filters finds are looked at:
 * `totalCount` is how many of them match, and `next` the place where the rest begins; null when there is none.
 */
export interface Looked<T, P> extends Paged<T> {
  readonly next: P | null
}

/** An entry for the audit trail. The store adds seq, previous hash and hash. */
export interface AuditEntry {
  readonly at: number
  /** Id of the agent that did it; `gateway` for the gateway itself. */
  readonly actor: string
  /** `agent.register`, `policy.update`, `hitl.approve`, `hitl.replay`, ... */
  readonly action: string
  /** Id or name of the agent, policy or request concerned. */
  readonly subject: string
  readonly requestId: string | null
  /** JSON-safe details: digest, comment, before, after, outcome. Never a secret. */
  readonly details: Readonly<Record<string, unknown>>
}

export interface AuditRecord extends AuditEntry {
  /** 1, 2, 3, ... without a gap. */
  readonly seq: number
  /** SHA-256, hex, of the previous record; 64 zeros for the first. */
  readonly previous: string
  /** SHA-256, hex, over previous and the canonical JSON of this record. */
  readonly hash: string
}

export interface AuditFilter {
  readonly actor?: string
  readonly action?: string
  readonly subject?: string
  /** Included. */
  readonly from?: number
  /** Not included. */
  readonly to?: number
}

/** `before`: only records before this one. */
export interface AuditQuery extends Page {
  readonly before?: number | undefined
}

export type AuditPage = Looked<AuditRecord, number>

/** Place in the chain. */
export type ChainLink = Pick<AuditRecord, 'seq' | 'hash'>

/** What the chain says of a stretch of records. `isEnd`: no record follows. */
export type VerifiedEntries =
  | { readonly last: ChainLink; readonly isEnd: boolean }
  | { readonly firstBroken: number; readonly why: string }

export interface AuditTable {
  append(entry: AuditEntry): Promise<void>
  /** Newest first: by time, then by `seq`. */
  list(page: AuditQuery, filter?: AuditFilter): Promise<AuditPage>
  /** Oldest first, from `seq` on: for export and verification. */
  after(seq: number, limit: number): Promise<readonly AuditRecord[]>
  /** Checks that `link` is still there, and up to `limit` records that follow it; seq 0 is the beginning. */
  verify(link: ChainLink, limit: number): Promise<VerifiedEntries>
  /** What `keep` was given last: opaque to the store. */
  kept(): Promise<Uint8Array | undefined>
  /** Keeps how far a verification has got. */
  keep(note: Uint8Array): Promise<void>
}
