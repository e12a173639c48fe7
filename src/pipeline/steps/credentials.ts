/** What the gateway adds for this agent and upstream: picked after the decision, which does not read it. */
import { isRefusal, type Refusal } from '../../base/refusals.ts'
import type { CredentialMessage } from '../../credentials/placement.ts'
import type { Checked } from '../exchange.ts'
import type { Call, CallKind } from '../outbound/call.ts'
import type { OutboundParts } from '../parts.ts'
import { closeCircuit } from './circuit.ts'

export function pickCredentials(call: Call, { credentials }: OutboundParts): Refusal | undefined {
  const picked = credentials.pick(call)
  if (isRefusal(picked)) return picked
  call.credentials = picked
  return undefined
}

/** Waits until the values may be sent. The rights of a call that waited are checked again. */
export function awaitCredentials<C extends Call>(
  call: C,
  parts: OutboundParts,
  kind: Pick<CallKind<C>, 'stillHolds'>,
): Checked | Promise<Checked> {
  if (call.credentials === undefined) return undefined
  const outcome = parts.credentials.ready(call.credentials)
  if (!(outcome instanceof Promise)) return outcome
  // A token server that is slow must not keep a probe of the circuit from other requests.
  closeCircuit(call, 'neutral', parts)
  return outcome.then(late => late ?? (call.isOver ? undefined : kind.stillHolds(call, parts)))
}

/** The request with its credentials. */
export function withCredentials<M extends CredentialMessage>(
  { credentials: picked }: Call,
  message: M,
  { credentials }: OutboundParts,
): M {
  return picked === undefined ? message : credentials.place(picked, message)
}
