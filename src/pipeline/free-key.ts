import type { Exchange } from './exchange.ts'
import type { Parts } from './parts.ts'

/**
 * Frees the idempotency key of a request that a grant let pass and of which no byte was sent, so that a retry may pass.
 * Where the store fails the key stays taken: a key is never sent twice.
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
