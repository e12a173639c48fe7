import { type Refusal, refuse } from '../errors.ts'
import type { Outcome } from '../limits/breaker.ts'
import type { Admitted, Exchange } from './exchange.ts'
import type { Parts } from './parts.ts'

/**
 * Takes a permit for the origin unless the exchange has one; refuses while the circuit of the agent, or of all agents, is
 * open.
 */
export function passCircuit(exchange: Admitted, { breaker, clock }: Parts): Refusal | undefined {
  if (exchange.permit !== undefined) return undefined
  const permit = breaker.acquire(exchange.target.origin.key, exchange.agent.id, clock)
  if (typeof permit === 'number') return refuseOpenCircuit(permit)
  exchange.permit = permit
  return undefined
}

/** @param wait milliseconds until a probe may pass */
export function refuseOpenCircuit(wait: number): Refusal {
  return refuse('circuit_open', undefined, { headers: ['Retry-After', String(Math.ceil(wait / 1_000))] })
}

/** Returns the permit with the outcome for the upstream. The first outcome counts; later calls do nothing. */
export function closeCircuit(exchange: Exchange, outcome: Outcome, { breaker, clock }: Parts): void {
  const { permit } = exchange
  if (permit === undefined) return
  exchange.permit = undefined
  breaker.release(permit, outcome, clock)
}

/** Whether an upstream's answer counts as its failure: it says that it, or a server behind it, is not available. */
export function outcomeOfStatus(status: number): Outcome {
  return status >= 502 && status <= 504 ? 'failure' : 'success'
}
