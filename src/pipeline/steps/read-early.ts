/** Bodies that the decision did not need, and that are read before they are sent. */
import { isRefusal } from '../../base/refusals.ts'
import { wantBody } from '../answers/readers.ts'
import type { Decided, StepOutcome, StepResult } from '../exchange.ts'
import { maxCancellation, readCancellation } from '../mcp/json-rpc.ts'
import { cancelsHeld, mayCancel } from '../mcp/requests.ts'
import { live, receiveBody } from '../outbound/live.ts'
import type { Parts } from '../parts.ts'
import { wantsSample } from '../recording-mode.ts'
import { passCircuit } from './circuit.ts'
import { pickCredentials } from './credentials.ts'
import { decideWhole } from './decide.ts'

/** Reads a short body that may cancel a held request, that a reader of answers wants to see, or that is sampled. */
export function readEarly(exchange: Decided, parts: Parts): StepResult {
  if (!exchange.hasBody || exchange.body !== undefined || exchange.effect === 'Hitl') return undefined
  if (mayCancel(exchange, parts)) return readMessage(exchange, parts)
  const isWanted = wantBody(exchange, parts.readers) || wantsSample(exchange, parts)
  return isWanted ? readWanted(exchange, parts) : undefined
}

/** Decides with a short body what the head alone had decided. A longer one, whose length was unknown, is streamed. */
async function readMessage(exchange: Decided, parts: Parts): Promise<StepOutcome> {
  const held = await receiveBody(exchange, maxCancellation, parts)
  if (isRefusal(held)) return held
  if (exchange.isOver) return undefined
  if (!held.complete) return passCircuit(exchange, parts)
  // The rule that decides now may name another credential.
  return (await decideWhole(exchange, parts, live)) ?? pickCredentials(exchange, parts)
}

async function readWanted(exchange: Decided, parts: Parts): Promise<StepOutcome> {
  const held = await receiveBody(exchange, exchange.fields.contentLength, parts)
  if (isRefusal(held)) return held
  return exchange.isOver ? undefined : passCircuit(exchange, parts)
}

/** A body that was read may cancel a held request of an MCP client. */
export function cancel(exchange: Decided, parts: Parts): StepResult {
  const { body, effect } = exchange
  if (body === undefined || effect === 'Hitl' || readCancellation(body) === undefined) return undefined
  return cancelsHeld(exchange, body, parts).then(isDone => (isDone ? 'answered' : undefined))
}
