import { refuseStatus } from '../agents/agent.ts'
import { type Refusal, refuse } from '../errors.ts'
import { fieldValues } from '../http/headers.ts'
import { fieldName } from '../http/names.ts'
import { tokens } from '../telemetry/layout.ts'
import type { Claims } from '../tokens/claims.ts'
import { presentedToken, refuseToken, type TokenProblem } from '../tokens/problem.ts'
import type { Exchange, Outcome, Step } from './exchange.ts'
import type { Parts } from './parts.ts'

/**
 * Finds the agent behind the token (spec 5.1, 5.2). Which agent it is comes from the token; what it may do now is
 * read from the registry.
 */
export function authenticate(exchange: Exchange, parts: Parts): Step {
  if (parts.isFenced()) return refuse('draining')
  const token = tokenOf(exchange, parts)
  if (typeof token !== 'string') return token
  exchange.token = token
  const claims = parts.verifyToken(token)
  // A token that was verified before is known at once.
  const isKnown = !(claims instanceof Promise)
  parts.metrics?.count(tokens, isKnown && typeof claims !== 'string' ? 'hit' : 'miss')
  if (!isKnown) return claims.then(verified => findAgent(exchange, verified, parts))
  return findAgent(exchange, claims, parts)
}

const authorization: readonly string[] = ['authorization']

/** Finds the token text, and notes the names of the fields that are not sent upstream. */
function tokenOf(exchange: Exchange, parts: Parts): string | Refusal {
  const { UseCustomHeader, CustomHeaderName, FallbackToAuthorization } = parts.config.Security.AgentAuth
  const raw = exchange.req.rawHeaders
  if (!UseCustomHeader) {
    exchange.tokenNames = authorization
    return presentedToken(fieldValues(raw, 'authorization'), 'Authorization')
  }
  const { lower, folded } = fieldName(CustomHeaderName)
  const values = fieldValues(raw, lower)
  if (values.length > 0 || !FallbackToAuthorization) {
    exchange.tokenNames = [folded]
    return presentedToken(values, CustomHeaderName)
  }
  exchange.tokenNames = [folded, ...authorization]
  return presentedToken(fieldValues(raw, 'authorization'), 'Authorization')
}

function findAgent(exchange: Exchange, claims: Claims | TokenProblem, parts: Parts): Outcome {
  const agent = typeof claims === 'string' ? undefined : parts.agentOf(claims.sub)
  if (typeof claims === 'string' || agent === undefined) {
    return refuseToken(typeof claims === 'string' ? claims : 'unknown_agent', tokenField(exchange, parts))
  }
  exchange.claims = claims
  exchange.agent = agent
  return refuseStatus(agent.status)
}

/** The field that the token was in, as the configuration spells it. */
function tokenField({ tokenNames }: Exchange, { config }: Parts): string {
  return tokenNames.at(-1) === 'authorization' ? 'Authorization' : config.Security.AgentAuth.CustomHeaderName
}
