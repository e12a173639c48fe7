import { type Refusal, refuse } from '../../base/refusals.ts'
import type { CircuitOutcome } from '../../limits/breaker.ts'
import type { Call } from '../outbound/call.ts'
import type { OutboundParts } from '../parts.ts'

/**
 * Takes a permit for the origin unless the call has one; refuses while the circuit of the agent, or of all agents, is
 * open.
 */
export function passCircuit(call: Call, { breaker, clock }: OutboundParts): Refusal | undefined {
  if (call.permit !== undefined) return undefined
  const permit = breaker.acquire(call.target.origin.key, call.agent.id, clock)
  if (typeof permit === 'number') return refuseOpenCircuit(permit)
  call.permit = permit
  return undefined
}

/** @param wait milliseconds until a probe may pass */
function refuseOpenCircuit(wait: number): Refusal {
  return refuse('circuit_open', undefined, { headers: ['Retry-After', String(Math.ceil(wait / 1_000))] })
}

/** Returns the permit with the outcome for the upstream. The first outcome counts; later calls do nothing. */
export function closeCircuit(
  call: Pick<Call, 'permit'>,
  outcome: CircuitOutcome,
  { breaker, clock }: OutboundParts,
): void {
  const { permit } = call
  if (permit === undefined) return
  call.permit = undefined
  breaker.release(permit, outcome, clock)
}

/** Gives the permit back without an outcome. */
export function releasePermit(call: Pick<Call, 'permit'>, parts: OutboundParts): void {
  closeCircuit(call, 'neutral', parts)
}

/** Whether an upstream's answer counts as its failure: it says that it, or a server behind it, is not available. */
export function outcomeOfStatus(status: number): CircuitOutcome {
  return status >= 502 && status <= 504 ? 'failure' : 'success'
}
