import type { Refusal } from '../base/refusals.ts'
import { resetConnection } from '../http/reset.ts'
import { sendRefusal } from '../http/respond.ts'
import { errorFormatOf } from './error-format.ts'
import type { Exchange } from './exchange.ts'
import { inFormOfClient } from './steps/authenticate.ts'

/** Refuses an exchange, once. An exchange that was ended while it waited keeps its first answer. */
export function answer(exchange: Exchange, given: Refusal): void {
  if (exchange.refusal !== undefined) return
  const refusal = inFormOfClient(exchange, given)
  exchange.refusal = refusal.refusal
  exchange.cause = refusal.cause
  exchange.failure = refusal.failure
  const { rpc, res, hitlId, requestId, rateFields } = exchange
  if (rpc !== undefined && !res.writableEnded && (rpc.isStream || !res.headersSent)) {
    exchange.ending ??= 'refused'
    rpc.refuse(hitlId === undefined ? refusal : { ...refusal, members: { hitlId, ...refusal.members } })
    return
  }
  if (res.headersSent) exchange.ending = 'broken'
  else exchange.ending ??= 'refused'
  const { headers = [] } = refusal
  const whole = rateFields === undefined ? refusal : { ...refusal, headers: [...headers, ...rateFields] }
  const format = errorFormatOf(exchange.rawTarget, exchange.req.rawHeaders)
  sendRefusal(res, whole, requestId, { format, isUnaware: exchange.addressing.road !== undefined })
}

/**
 * In HTTP/1.0 a body without a length ends with the connection (RFC 9112 section 6.3), so only a reset shows that it is
 * truncated.
 */
export function breakOff({ req, res, socket }: Exchange): void {
  if (req.httpVersion === '1.0') resetConnection(socket)
  else res.destroy()
}
