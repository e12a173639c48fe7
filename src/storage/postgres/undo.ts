import type { GrantUse } from '../grants.ts'
import type { StoreOperation } from '../operations.ts'
import type { AuditEntry, HitlBrief } from '../store.ts'

/**
 * The operation that undoes a write that was committed although its caller got an error: a claim whose request was not sent
 * is released, and an idempotency key that names no sending is free again. Undefined when nothing must be taken back.
 */
export function undoOf(
  { table, method, args }: StoreOperation,
  value: unknown,
  now: number,
): StoreOperation | undefined {
  if (table === 'hitl' && method === 'claim' && isClaimed(value)) {
    const { id, attempt, digest } = value.claimed
    const entry: AuditEntry = {
      ...{ at: now, actor: 'gateway', action: 'hitl.release', subject: id, requestId: null },
      details: { digest, outcome: 'notSent', why: 'store_unavailable' },
    }
    return { table, method: 'release', args: [id, attempt, entry] }
  }
  // The arguments of the method are those of the contract.
  const { key } = table === 'grants' && method === 'use' ? (args[1] as GrantUse) : {}
  return key !== undefined && typeof value === 'object'
    ? { table: 'grants', method: 'releaseKey', args: [key] }
    : undefined
}

function isClaimed(value: unknown): value is { readonly claimed: HitlBrief } {
  return typeof value === 'object' && value !== null && 'claimed' in value
}
