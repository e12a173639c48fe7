/** Tokens of credentials that a person has granted, in the storage contract. */
import type { AuditEntry } from './audit.ts'
import type { EventNote } from './events.ts'

/** What the followers of the feed learn: the row is read by those who need it. */
export interface CredentialVersion {
  readonly name: string
  /** One more with each change of the row. */
  readonly version: number
}

export interface StoredCredential extends CredentialVersion {
  /** `needed`: a person must grant access again. */
  readonly state: 'ready' | 'needed'
  /** 1 when its server gives another refresh token with each access token: then a token of before is never used again. */
  readonly rotates: 0 | 1
  /** Opaque to the store. */
  readonly sealed: Uint8Array
}

/** The right of one gateway to use the refresh token of a version. */
export interface CredentialLease extends CredentialVersion {
  readonly now: number
  readonly until: number
}

/** What is recorded of a change, and told. */
export interface CredentialNotes {
  readonly entry?: AuditEntry | undefined
  readonly event?: EventNote | undefined
}

export interface StoredCredentialTable {
  all(): Promise<readonly CredentialVersion[]>
  of(name: string): Promise<StoredCredential | undefined>
  /** Takes the lease of a version, or keeps its own. False: the row has another version, or another gateway has the lease. */
  lease(lease: CredentialLease): Promise<boolean>
  /** Replaces the version before it, whoever has the lease; version 1 replaces nothing. False: there is another one, and nothing was done. */
  put(row: StoredCredential, notes: CredentialNotes): Promise<boolean>
  /** Records what happened to a credential that has no row. */
  note(notes: CredentialNotes): Promise<void>
}
