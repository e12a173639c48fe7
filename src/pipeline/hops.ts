import { upstreamFields } from '../http/headers.ts'
import { sendReply } from '../http/respond.ts'
import type { Exchange } from './exchange.ts'
import type { Parts } from './parts.ts'

/** Whether the gateway is the last recipient: OPTIONS with `Max-Forwards: 0` (RFC 9110 section 7.6.2). */
export function isLastHop({ req, fields }: Exchange): boolean {
  return req.method === 'OPTIONS' && fields.maxForwards !== undefined && Number(fields.maxForwards) === 0
}

export function answerOptions(exchange: Exchange): undefined {
  exchange.ending = 'refused'
  const headers = ['Allow', 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS']
  void sendReply(exchange.res, { status: 200, headers }, exchange.requestId)
}

/** The fields of the upstream request; the connection adds those that frame its body. */
export function requestFields({ req, fields, tokenNames }: Exchange, { config }: Parts): string[] {
  const headers = upstreamFields(req.rawHeaders, fields, tokenNames)
  if (config.Proxy.Via) headers.push('Via', `${req.httpVersion} ${viaName}`)
  if (req.method === 'OPTIONS') countHop(headers)
  return headers
}

/** Pseudonym of this gateway in `Via` (RFC 9110 section 7.6.3): a request that arrives with it is a loop. */
export const viaName = 'agent-gateway'

function countHop(fields: string[]): void {
  for (let i = 0; i < fields.length; i += 2) {
    if (fields[i]?.toLowerCase() === 'max-forwards') fields[i + 1] = String(Math.max(0, Number(fields[i + 1]) - 1))
  }
}
