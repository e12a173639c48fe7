import { receivedVersion } from '../../http/connection-pair.ts'
import { upstreamFields } from '../../http/headers.ts'
import { sendReply } from '../../http/respond.ts'
import type { UpstreamRequest } from '../../upstream/handler.ts'
import type { Interest } from '../answers/interest.ts'
import type { Exchange, Sendable } from '../exchange.ts'
import type { Parts } from '../parts.ts'
import { withCredentials } from './credentials.ts'

/** Whether the gateway is the last recipient: OPTIONS with `Max-Forwards: 0` (RFC 9110 section 7.6.2). */
function isLastHop({ req, fields }: Exchange): boolean {
  return req.method === 'OPTIONS' && fields.maxForwards !== undefined && Number(fields.maxForwards) === 0
}

/** Answers a request of which the gateway is the last recipient. */
export function answerLastHop(exchange: Exchange): 'answered' | undefined {
  if (!isLastHop(exchange)) return undefined
  exchange.ending = 'refused'
  const headers = ['Allow', 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS']
  void sendReply(exchange.res, { status: 200, headers }, exchange.requestId)
  return 'answered'
}

/** The upstream request: the decided bytes, or the body as it comes (spec 4.4, forwarding rules). */
export function upstreamRequest(exchange: Sendable, parts: Parts): UpstreamRequest {
  const { interests } = exchange
  const given = requestFields(exchange, parts)
  const base = parts.tracing?.propagate(exchange, exchange.target.origin.host, given) ?? given
  const fields = interests !== undefined && wantPlainBytes(interests) ? withoutCoding(base) : base
  const request = {
    agentId: exchange.agent.id,
    method: exchange.method,
    path: exchange.target.requestTarget,
    fields,
    body: exchange.body ?? (exchange.hasBody ? exchange.req : null),
    // The announced length is kept; node's parser checks that the body has it.
    bodyLength: exchange.fields.contentLength > 0 ? exchange.fields.contentLength : undefined,
  }
  return withCredentials(exchange, request, parts)
}

/** The fields of the upstream request; the connection adds those that frame its body. */
export function requestFields({ req, fields, tokenNames }: Exchange, { config }: Parts): string[] {
  const headers = upstreamFields(req.rawHeaders, fields, tokenNames)
  if (config.Proxy.Via) headers.push('Via', `${receivedVersion(req)} ${viaName}`)
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

function wantPlainBytes(interests: readonly Interest[]): boolean {
  for (const interest of interests) if (interest.wantsPlainBytes) return true
  return false
}

/** The fields of the request, with an encoding that the gateway reads. */
export function withoutCoding(fields: readonly string[]): string[] {
  const kept = fields.filter((_, i) => fields[i - (i % 2)]!.toLowerCase() !== 'accept-encoding')
  return [...kept, 'Accept-Encoding', 'identity']
}
