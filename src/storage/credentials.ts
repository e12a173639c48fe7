/** Tokens of credentials that a person has granted, in the storage contract. */
import type { AgentRecord } from './agents.ts'
import type { AuditEntry } from './audit.ts'
import type { CodeLimits, CodeRecord } from './codes.ts'
import type { EventNote } from './events.ts'

/** Which token: of a credential in the settings, and, if it has accounts, of which one. */
export interface CredentialKey {
  readonly name: string
  /** Whose account it is; empty for a credential that all share. Tokens of one subject are never sent for another. */
  readonly subject: string
}

/** One text for each key: names have no space. */
export const keyText = ({ name, subject }: CredentialKey): string => (subject === '' ? name : `${name} ${subject}`)

/** The other way round. */
export function parseKey(text: string): CredentialKey {
  const at = text.indexOf(' ')
  return at < 0 ? { name: text, subject: '' } : { name: text.slice(0, at), subject: text.slice(at + 1) }
}

/** An agent that is registered again with the same id is another subject: its predecessor's accounts are not its own. */
export const agentSubject = ({ id, createdAt }: Pick<AgentRecord, 'id' | 'createdAt'>): string =>
  `agent ${id} ${createdAt}`

export const ownerSubject = (ownerId: string): string => `owner ${ownerId}`

/** The account of all agents. */
export const allSubject = 'all'

/** Not an account: the client that the gateway is at the server of a credential. */
export const clientSubject = 'client'

/** Whom a subject names; neither for `allSubject` and a credential without accounts. */
export function subjectFacts(subject: string): { readonly agentId?: string; readonly ownerId?: string } {
  const [kind, id = ''] = subject.split(' ', 2)
  if (kind === 'owner') return { ownerId: subject.slice(kind.length + 1) }
  return kind === 'agent' ? { agentId: id } : {}
}

/** What the followers of the feed learn: the row is read by those who need it. */
export interface CredentialVersion extends CredentialKey {
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

/** A consent that was begun: it ends once, by the person who began it. */
export interface ConsentRecord extends CodeRecord {
  /** Opaque to the store. */
  readonly sealed: Uint8Array
}

export interface StoredCredentialTable {
  all(): Promise<readonly CredentialVersion[]>
  of(key: CredentialKey): Promise<StoredCredential | undefined>
  /** Rows of a credential, or of a subject, by subject and name; at most `limit`. */
  list(of: Partial<CredentialKey>, limit: number): Promise<readonly StoredCredential[]>
  /** Takes the lease of a version, or keeps its own. False: the row has another version, or another gateway has the lease. */
  lease(lease: CredentialLease): Promise<boolean>
  /** Replaces the version before it, whoever has the lease; version 1 replaces nothing. False: there is another one, and nothing was done. */
  put(row: StoredCredential, notes: CredentialNotes): Promise<boolean>
  /** Records what happened to a credential that has no row. */
  note(notes: CredentialNotes): Promise<void>
  /** Keeps what was begun, within the limits of codes. */
  keepConsent(consent: ConsentRecord, limits: CodeLimits & { readonly now: number }): Promise<void>
  /** What was begun and is not over at `now`. It is used up: of several callers one gets it. */
  takeConsent(hash: string, now: number): Promise<ConsentRecord | undefined>
}
