import type { GrantTable } from '../grants.ts'
import type { StoreOperation } from '../operations.ts'
import type { AuditEntry, HitlBrief } from '../store.ts'

/**
 * The operation that undoes a write that was committed although its caller got an error: a claim whose request was not sent
 * is released, and a use of a grant that let nothing pass is given back with its idempotency key. Undefined when nothing must be
 * taken back.
 *
 * @param mayBeDone it was tried before, without an answer: a use given back twice would let one request too many pass, so then the
 * key alone is freed
 */
export function undoOf(
  { table, method, args }: StoreOperation,
  value: unknown,
  now: number,
  mayBeDone: boolean,
): StoreOperation | undefined {
  if (table === 'hitl' && method === 'claim' && isClaimed(value)) {
    const { id, attempt, digest } = value.claimed
    const entry: AuditEntry = {
      ...{ at: now, actor: 'gateway', action: 'hitl.release', subject: id, requestId: null },
      details: { digest, outcome: 'notSent', why: 'store_unavailable' },
    }
    return { table, method: 'release', args: [id, attempt, entry] }
  }
  if (table !== 'grants' || method !== 'use' || typeof value !== 'object') return undefined
  // The arguments of the method are those of the contract.
  const [id, { key }, entry] = args as Parameters<GrantTable['use']>
  if (mayBeDone) return key && { table, method: 'releaseKey', args: [key] }
  return { table, method: 'giveBack', args: [id, key, { ...entry, at: now, action: 'hitl.grant.giveBack' }] }
}

function isClaimed(value: unknown): value is { readonly claimed: HitlBrief } {
  return typeof value === 'object' && value !== null && 'claimed' in value
}
