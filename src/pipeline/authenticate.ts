import { refuseStatus } from '../agents/agent.ts'
import type { Refusal } from '../errors.ts'
import { refuse } from '../errors.ts'
import { fieldValues } from '../http/headers.ts'
import { tokens } from '../telemetry/layout.ts'
import type { Claims } from '../tokens/claims.ts'
import type { TokenProblem } from '../tokens/problem.ts'
import { presentedToken, refuseToken } from '../tokens/problem.ts'
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
  // What was verified before is known at once.
  const isKnown = !(claims instanceof Promise)
  parts.metrics?.count(tokens, isKnown && typeof claims !== 'string' ? 'hit' : 'miss')
  if (!isKnown) return claims.then(verified => admit(exchange, verified, parts))
  return admit(exchange, claims, parts)
}

/** Finds the token text, and notes the names of the fields that are kept back from the upstream. */
function tokenOf(exchange: Exchange, parts: Parts): string | Refusal {
  const { UseCustomHeader, CustomHeaderName, FallbackToAuthorization } = parts.config.Security.AgentAuth
  const raw = exchange.req.rawHeaders
  if (!UseCustomHeader) {
    exchange.tokenNames = ['authorization']
    return presentedToken(fieldValues(raw, 'authorization'), 'Authorization')
  }
  const custom = CustomHeaderName.toLowerCase()
  const values = fieldValues(raw, custom)
  if (values.length > 0 || !FallbackToAuthorization) {
    exchange.tokenNames = [custom]
    return presentedToken(values, CustomHeaderName)
  }
  exchange.tokenNames = [custom, 'authorization']
  return presentedToken(fieldValues(raw, 'authorization'), 'Authorization')
}

function admit(exchange: Exchange, claims: Claims | TokenProblem, parts: Parts): Outcome {
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
