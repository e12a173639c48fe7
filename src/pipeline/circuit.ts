import type { Refusal } from '../errors.ts'
import { refuse } from '../errors.ts'
import type { Outcome } from '../limits/breaker.ts'
import type { Exchange } from './exchange.ts'
import type { Parts } from './parts.ts'

/** Takes a permit for the origin, or refuses while the circuit of the agent, or of all agents, is open. */
export function passCircuit(exchange: Exchange, parts: Parts): Refusal | undefined {
  const { target, agent } = exchange
  const permit = parts.breaker.acquire(target?.origin.key ?? '', agent?.id ?? '', parts.clock.steady())
  if (typeof permit === 'number') return refuseOpenCircuit(permit)
  exchange.permit = permit
  return undefined
}

/** `wait` is milliseconds until a probe may pass. */
export function refuseOpenCircuit(wait: number): Refusal {
  return refuse('circuit_open', undefined, { headers: ['Retry-After', String(Math.ceil(wait / 1_000))] })
}

/** Returns the permit with the outcome for the upstream. The first outcome counts; later calls do nothing. */
export function closeCircuit(exchange: Exchange, outcome: Outcome, parts: Parts): void {
  const { permit } = exchange
  if (permit === undefined) return
  exchange.permit = undefined
  parts.breaker.release(permit, outcome, parts.clock.steady())
}

/** Whether an upstream's answer counts as its failure: it says that it, or what is behind it, is not there. */
export function outcomeOfStatus(status: number): Outcome {
  return status >= 502 && status <= 504 ? 'failure' : 'success'
}
