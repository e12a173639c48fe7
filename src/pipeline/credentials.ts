import type { Refusal } from '../errors.ts'
import { isRefusal } from '../errors.ts'
import type { Exchange } from './exchange.ts'
import type { Parts } from './parts.ts'

/** Gets the fields that the gateway adds for this agent and upstream; none of the decision's business. */
export function attachCredentials(exchange: Exchange, { credentials }: Parts): Refusal | undefined {
  const { agent, target, req, tokenNames } = exchange
  if (credentials === undefined || agent === undefined || target === undefined) return undefined
  const fields = credentials.fieldsFor({ origin: target.origin, agent, rawHeaders: req.rawHeaders, tokenNames })
  if (isRefusal(fields)) return fields
  exchange.credentials = fields
  return undefined
}
