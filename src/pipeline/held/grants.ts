/** Grants: leave of a reviewer that lets requests like an approved one pass for a while. */
import { isRefusal, type Refusal, refuse } from '../../base/refusals.ts'
import type { Decided, Exchange } from '../exchange.ts'
import type { Parts } from '../parts.ts'
import { suspensionOf } from './suspend.ts'

/** What else a request needs to pass once a grant covers it. No grant is used when this refuses it, or asks a person. */
type Prepare = () => PreparedCall | Promise<PreparedCall>
type PreparedCall = Refusal | 'asks' | undefined

/** True when a grant lets this request pass; its use is on record then. */
export async function useGrant(
  exchange: Decided,
  parts: Parts,
  prepare: Prepare | undefined,
): Promise<boolean | Refusal> {
  const used = await usePrepared(exchange, parts, prepare)
  exchange.grantId = undefined
  if (used === undefined || used === 'asks') return false
  if (isRefusal(used)) return used
  exchange.grantId = used.grant.id
  exchange.takenKey = used.key
  if (exchange.isOver) await freeKey(exchange, parts)
  return true
}

/** Preparing belongs to the thread of the request, grants to the main one: so it is asked twice. */
async function usePrepared(exchange: Decided, parts: Parts, prepare: Prepare | undefined) {
  const { grants } = parts
  const held = suspensionOf(exchange, Buffer.alloc(0), parts)
  if (prepare === undefined) return grants.use(held)
  const covered = await grants.covers(held)
  if (covered !== true) return covered || undefined
  // The client may leave during each wait: what was reserved then would stay so, and a use of the grant would be lost.
  const refused = exchange.isOver ? left : await prepare()
  return refused ?? (exchange.isOver ? left : grants.use(held))
}

/** Nobody gets it. */
const left = refuse('invalid_request')

/** Frees the key at the end of an exchange, if the request did not leave. */
export function releaseKey(exchange: Exchange, parts: Parts): void {
  if (exchange.takenKey !== undefined) void freeKey(exchange, parts)
}

/**
 * Frees the idempotency key of a request that a grant let pass and of which no byte was sent, so that a retry may pass.
 * If the store fails, the key stays taken, so that no request is sent twice.
 */
export async function freeKey(exchange: Exchange, { grants, report }: Parts): Promise<void> {
  const { takenKey } = exchange
  if (takenKey === undefined) return
  exchange.takenKey = undefined
  try {
    const failed = await grants.releaseKey(takenKey)
    if (failed !== undefined) report('an idempotency key could not be freed', new Error(failed.refusal))
  } catch (error) {
    report('an idempotency key could not be freed', error)
  }
}
