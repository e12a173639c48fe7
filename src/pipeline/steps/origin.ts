/** The origin of a call: its name is checked before the decision and looked up after it, and its circuit must be closed. */
import { isRefusal, type Refusal, refuse } from '../../base/refusals.ts'
import type { CircuitOutcome } from '../../limits/breaker.ts'
import { noteFailure } from '../../upstream/failure.ts'
import type { Resolution, RouteResult } from '../../upstream/resolve.ts'
import type { Checked } from '../exchange.ts'
import type { Call } from '../outbound/call.ts'
import type { OutboundParts } from '../parts.ts'

export function checkName({ target }: Call, { route }: OutboundParts): Refusal | undefined {
  return route.refuseName(target.origin)
}

/** Finds the addresses, unless a rule had to read them for the decision. */
export function lookUp(call: Call, parts: OutboundParts): Checked | Promise<Checked> {
  return call.resolution === undefined ? findAddresses(call, parts) : undefined
}

export function findAddresses(call: Call, parts: OutboundParts): Checked | Promise<Checked> {
  const found = parts.route.find(call.target.origin, call.agent.id)
  return found instanceof Promise ? found.then(late => keep(call, late, parts)) : keep(call, found, parts)
}

function keep(call: Call, found: RouteResult, parts: OutboundParts): Refusal | undefined {
  if (!isRefusal(found)) {
    call.resolution = found
    return undefined
  }
  const { agent, requestId, target } = call
  const about = { agentId: agent.id, requestId, host: target.origin.host }
  if (found.failure !== undefined) noteFailure(found.failure, about, parts)
  return found
}

/** When a rule reads the address, only the first address may be connected to: the decision was made on it. */
export function firstOnly(resolution: Resolution): Resolution {
  if (resolution.addresses.length === 1) return resolution
  return { ...resolution, addresses: resolution.addresses.slice(0, 1), isFirstOnly: true }
}

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
