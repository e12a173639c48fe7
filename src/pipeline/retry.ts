import type { UpstreamRequest } from '../upstream/handler.ts'
import { RefusedStreamError, StaleConnectionError } from '../upstream/handler.ts'

/** RFC 9110 section 9.2.2. TRACE is idempotent too, but never forwarded. */
const idempotent: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE'])

/**
 * Whether a failed request may be sent once more. A request that was not sent yet may always; one that was sent only if
 * sending it twice does no more than sending it once, and its body is still there.
 *
 * @param started the first bytes were about to be written
 */
export function maySendAgain(error: Error, { method, body }: UpstreamRequest, started: boolean): boolean {
  if (!(error instanceof StaleConnectionError || error instanceof RefusedStreamError)) return false
  return !started || (idempotent.has(method) && (body === null || Buffer.isBuffer(body)))
}
