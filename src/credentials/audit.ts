import type { By } from '../agents/registry.ts'
import { type CredentialKey, subjectFacts } from '../storage/credentials.ts'
import type { AuditEntry } from '../storage/store.ts'

interface CredentialChange {
  /** Without `credential.` before it. */
  readonly what: 'connected' | 'disconnected' | 'failed' | 'registered' | 'renew' | 'renewed' | 'scopeWanted'
  /** Milliseconds since the epoch. */
  readonly at: number
  /** Absent: the gateway itself. */
  readonly by?: By
  readonly facts?: AuditEntry['details']
}

/** What the audit trail has of a credential, and whose account it is. */
export const credentialEntry = (
  { name, subject }: CredentialKey,
  { what, at, by = { actor: 'gateway', requestId: null }, facts }: CredentialChange,
): AuditEntry => ({
  ...{ at, ...by, action: `credential.${what}`, subject: name },
  details: { ...subjectFacts(subject), ...facts },
})
