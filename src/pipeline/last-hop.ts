import { sendReply } from '../http/respond.ts'
import type { Exchange } from './exchange.ts'

/** Whether the request may go no further than here: OPTIONS with `Max-Forwards: 0` (RFC 9110 section 7.6.2). */
export function isLastHop({ req, fields }: Exchange): boolean {
  return req.method === 'OPTIONS' && fields.maxForwards !== undefined && Number(fields.maxForwards) === 0
}

/** The gateway speaks for itself, as the last recipient. */
export function answerOptions(exchange: Exchange): undefined {
  exchange.ending = 'refused'
  const headers = ['Allow', 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS']
  void sendReply(exchange.res, { status: 200, headers }, exchange.requestId)
}

/** The fields of a request that goes on, with one hop less. */
export function countHop(fields: readonly string[]): string[] {
  const out = [...fields]
  for (let i = 0; i < out.length; i += 2) {
    if (out[i]?.toLowerCase() === 'max-forwards') out[i + 1] = String(Math.max(0, Number(out[i + 1]) - 1))
  }
  return out
}
