import { isRefusal, refuse } from '../../base/refusals.ts'
import type { Decided, Sendable, StepOutcome, StepResult } from '../exchange.ts'
import { useGrant } from '../held/grants.ts'
import { suspend } from '../held/suspend.ts'
import type { Parts } from '../parts.ts'
import { releaseSpend, reserveSpend } from './budgets.ts'
import { notHeld } from './handshake.ts'

/** Holds a request for a person, if the decision says so and no grant covers it. */
export function review(exchange: Sendable, parts: Parts): StepResult {
  if (exchange.effect !== 'Hitl') return undefined
  if (exchange.addressing.road === 'tunnel') return tunnelNotHeld
  return exchange.fields.webSocket ? notHeld : hold(exchange, parts)
}

const tunnelNotHeld = refuse('tunnel_needs_review')

async function hold(exchange: Sendable, parts: Parts): Promise<StepOutcome> {
  // A use of the grant would be lost with a call that a budget refuses.
  const prepare = parts.budgets && (() => reserveSpend(exchange, parts))
  const granted = await useGrant(exchange, parts, prepare)
  if (granted !== true) releaseSpend(exchange, parts)
  if (isRefusal(granted)) return granted
  return granted ? undefined : ((await suspend(exchange, parts)) ?? 'answered')
}

/** Refuses a request that needs no review if its idempotency key names a request that was or may be sent after review. */
export function checkKey({ agent, effect, fields }: Decided, { queue }: Parts): StepResult {
  if (fields.idempotencyKey === undefined || effect === 'Hitl') return undefined
  return queue.checkKey(agent.id, fields.idempotencyKey)
}
