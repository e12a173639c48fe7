import { refuse } from '../../base/refusals.ts'
import type { Decided, StepOutcome, StepResult } from '../exchange.ts'
import { suspend } from '../held/suspend.ts'
import type { Parts } from '../parts.ts'
import { notHeld } from './handshake.ts'

const tunnelNotHeld = refuse('tunnel_needs_review')

/** Why the request cannot be held for a person; undefined when it can. */
export function heldProblem({ addressing, fields }: Decided) {
  if (addressing.road === 'tunnel') return tunnelNotHeld
  return fields.webSocket ? notHeld : undefined
}

/** Holds the request for a person. */
export function askPerson(exchange: Decided, parts: Parts): StepResult {
  return heldProblem(exchange) ?? hold(exchange, parts)
}

const hold = async (exchange: Decided, parts: Parts): Promise<StepOutcome> =>
  (await suspend(exchange, parts)) ?? 'answered'
