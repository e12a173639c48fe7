import { isRefusal } from '../../base/refusals.ts'
import type { Decided, Sendable, StepOutcome, StepResult } from '../exchange.ts'
import { useGrant } from '../held/grants.ts'
import type { Parts } from '../parts.ts'
import { askPerson, heldProblem } from './ask-person.ts'
import { releaseSpend, reserveSpend } from './budgets.ts'

/** Holds a request for a person, if the decision says so and no grant covers it. */
export function review(exchange: Sendable, parts: Parts): StepResult {
  if (exchange.effect !== 'Hitl') return undefined
  return heldProblem(exchange) ?? hold(exchange, parts)
}

async function hold(exchange: Sendable, parts: Parts): Promise<StepOutcome> {
  // A use of the grant would be lost with a call that a budget refuses.
  const prepare = parts.budgets && (() => reserveSpend(exchange, parts))
  const granted = await useGrant(exchange, parts, prepare)
  if (granted !== true) releaseSpend(exchange, parts)
  if (isRefusal(granted)) return granted
  return granted === true ? undefined : askPerson(exchange, parts)
}

/** Refuses a request that needs no review if its idempotency key names a request that was or may be sent after review. */
export function checkKey({ agent, effect, fields }: Decided, { queue }: Parts): StepResult {
  if (fields.idempotencyKey === undefined || effect === 'Hitl') return undefined
  return queue.checkKey(agent.id, fields.idempotencyKey)
}
