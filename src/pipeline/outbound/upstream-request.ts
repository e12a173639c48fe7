/**
 * The request that is sent upstream: the decided bytes, fields without those of the hop before, and the credentials that the
 * gateway adds for this agent and upstream. Those are picked after the decision, which does not read them, and hidden in the answer.
 */
import { isRefusal, type Refusal, refuse } from '../../base/refusals.ts'
import { type AwsMessage, readsBody } from '../../credentials/aws.ts'
import { chunkedLength } from '../../credentials/aws-chunks.ts'
import { withoutEchoes } from '../../credentials/placement.ts'
import { receivedVersion } from '../../http/accept.ts'
import { upstreamFields } from '../../http/headers.ts'
import { sendReply } from '../../http/respond.ts'
import { credentialEchoes } from '../../telemetry/layout.ts'
import type { ResponseHead, UpstreamRequest } from '../../upstream/handler.ts'
import type { Interest } from '../answers/interest.ts'
import type { Checked, Exchange, Sendable } from '../exchange.ts'
import type { OutboundParts, Parts } from '../parts.ts'
import { closeCircuit } from '../steps/origin.ts'
import type { Call, CallKind } from './call.ts'

export function pickCredentials(call: Call, { credentials }: OutboundParts): Refusal | undefined {
  const chosen = call.decision?.credential
  call.credentials = undefined
  if (!chosen && (credentials.areNone || call.isTunnel)) return undefined
  if (call.isTunnel) return noneInTunnel
  const picked = credentials.pick(call, chosen)
  if (isRefusal(picked)) return picked
  call.credentials = picked
  return chunkProblem(call)
}

const noneInTunnel = refuse(
  'credential_conflict',
  'The rule for this request names a credential. The gateway adds none in a tunnel that it does not open.',
)

/**
 * A body in signed chunks leaves without them, so nobody may have read it with them: texts that are divided among chunks would
 * be joined behind the back of a rule, or of a reviewer.
 */
function chunkProblem({ credentials, rawHeaders, decision }: Call): Refusal | undefined {
  if (!credentials?.some(({ scope }) => scope !== undefined) || chunkedLength(rawHeaders) === undefined)
    return undefined
  const isUnread = decision?.phase === 'head' && decision.decision === 'Allow'
  return isUnread ? undefined : refuse('signature_unsupported', readChunks)
}

const readChunks =
  'A rule or a reviewer reads this body, which the gateway does not do in signed chunks. Switch off chunked encoding in the SDK.'

/** Waits until the values may be sent. A body that must be signed is held first. The rights of a call that waited are checked again. */
export function awaitCredentials<C extends Call>(
  call: C,
  parts: OutboundParts,
  kind: Pick<CallKind<C>, 'stillHolds' | 'bodyOf'>,
): Checked | Promise<Checked> {
  const { credentials: picked, hasBody, rawHeaders } = call
  if (picked === undefined) return undefined
  // A later step may have decided on the body.
  const unsent = chunkProblem(call)
  if (unsent !== undefined) return unsent
  const isSigned = hasBody && picked.some(({ scope }) => scope !== undefined && readsBody(scope, rawHeaders))
  const waited = isSigned ? holdFirst(call, parts, kind) : parts.credentials.ready(picked, call.isApproved)
  if (!(waited instanceof Promise)) return waited
  // A token server that is slow must not keep a probe of the circuit from other requests.
  closeCircuit(call, 'neutral', parts)
  return waited.then(late => late ?? (call.isOver ? undefined : kind.stillHolds(call, parts)))
}

async function holdFirst<C extends Call>(
  call: C,
  parts: OutboundParts,
  kind: Pick<CallKind<C>, 'bodyOf'>,
): Promise<Refusal | undefined> {
  const held = await kind.bodyOf(call, parts)
  if (isRefusal(held)) return held
  if (!held.complete) return refuse('body_too_large', tooLong)
  return call.isOver || call.credentials === undefined
    ? undefined
    : parts.credentials.ready(call.credentials, call.isApproved)
}

const tooLong =
  'The body is longer than Proxy:MaxEvaluatedBodyBytes, so the gateway cannot sign it. Send its SHA-256 in X-Amz-Content-Sha256.'

/** The request with its credentials; undefined when one is no longer there, and nothing may be sent. */
export function withCredentials<M extends AwsMessage>(
  call: Call,
  message: M,
  { credentials }: OutboundParts,
): M | undefined {
  return call.credentials === undefined ? message : credentials.place(call.credentials, message, call.target.origin)
}

/** An upstream has answered with status 403. A refusal for the agent when it wants scopes that a person can grant. */
export function noteForbidden(
  { credentials: picked, target }: Pick<Call, 'credentials' | 'target'>,
  fields: readonly string[],
  { credentials, report }: OutboundParts,
): Refusal | undefined {
  if (picked === undefined) return undefined
  const { host } = target.origin
  const problem = credentials.noteClock(picked, fields, host)
  if (problem !== undefined) report('signatures for AWS are refused', new Error(problem))
  return credentials.noteWanted(picked, fields, host)
}

/**
 * The fields of an answer as the agent may see them: without the values of the credentials that were added to its request. The
 * body is not searched.
 */
export function guardFields(
  fields: readonly string[],
  { credentials }: Pick<Call, 'credentials'>,
  { metrics }: Pick<OutboundParts, 'metrics'>,
): readonly string[] {
  if (credentials === undefined) return fields
  const { fields: guarded, echoes } = withoutEchoes(fields, credentials)
  if (echoes > 0) metrics.add(credentialEchoes, echoes)
  return guarded
}

/** The head of an answer in the same way, the same object when it shows no value. Some servers say in the reason what they refuse. */
export function guardHead(
  head: ResponseHead,
  call: Pick<Call, 'credentials'>,
  parts: Pick<OutboundParts, 'metrics'>,
): ResponseHead {
  if (call.credentials === undefined) return head
  const fields = guardFields(head.fields, call, parts)
  const [, reason = ''] = guardFields(['', head.reason], call, parts)
  return fields === head.fields && reason === head.reason ? head : { ...head, fields, reason }
}

/** Whether what was placed may still be sent: an account may have been disconnected while the request waited for a connection. */
export const hasLatestCredentials = (
  { credentials: picked }: Pick<Call, 'credentials'>,
  { credentials }: OutboundParts,
): boolean => picked === undefined || credentials.areLatest(picked)

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

/** The upstream request: the decided bytes, or the body as it comes (spec 4.4, forwarding rules). Undefined as `withCredentials`. */
export function upstreamRequest(exchange: Sendable, parts: Parts): UpstreamRequest | undefined {
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

const codingName = 'accept-encoding'

/** The fields of the request, with an encoding that the gateway reads. */
export function withoutCoding(fields: readonly string[]): string[] {
  const kept: string[] = []
  for (let i = 0; i < fields.length; i += 2) {
    const name = fields[i]!
    if (name.length === codingName.length && name.toLowerCase() === codingName) continue
    kept.push(name, fields[i + 1]!)
  }
  kept.push('Accept-Encoding', 'identity')
  return kept
}
