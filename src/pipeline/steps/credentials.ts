/** What the gateway adds for this agent and upstream: picked after the decision, which does not read it. */
import { isRefusal, type Refusal, refuse } from '../../base/refusals.ts'
import { type AwsMessage, readsBody } from '../../credentials/aws.ts'
import { chunkedLength } from '../../credentials/aws-chunks.ts'
import type { Checked } from '../exchange.ts'
import type { Call, CallKind } from '../outbound/call.ts'
import type { OutboundParts } from '../parts.ts'
import { closeCircuit } from './circuit.ts'

export function pickCredentials(call: Call, { credentials }: OutboundParts): Refusal | undefined {
  const picked = credentials.pick(call, call.decision?.credential)
  if (isRefusal(picked)) return picked
  call.credentials = picked
  return chunkProblem(call)
}

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

/** The request with its credentials. */
export function withCredentials<M extends AwsMessage>(call: Call, message: M, { credentials }: OutboundParts): M {
  return call.credentials === undefined ? message : credentials.place(call.credentials, message, call.target.origin)
}

/** Whether what was placed may still be sent: an account may have been disconnected while the request waited for a connection. */
export const hasLatestCredentials = (
  { credentials: picked }: Pick<Call, 'credentials'>,
  { credentials }: OutboundParts,
): boolean => picked === undefined || credentials.areLatest(picked)
