import { agentProblem } from '../agents/agent.ts'
import { refuse } from '../errors.ts'
import { fieldValues } from '../http/headers.ts'
import { tokens } from '../telemetry/layout.ts'
import type { Claims, Exchange, Outcome, Step } from './exchange.ts'
import type { Parts } from './parts.ts'

/**
 * Finds the agent behind the token (spec 5.1, 5.2). Which agent it is comes from the token; what it may do now is
 * read from the registry.
 */
export function authenticate(exchange: Exchange, parts: Parts): Step {
  if (parts.isFenced()) return refuse('draining')
  const token = tokenOf(exchange, parts)
  if (token === undefined) return refuse('unauthenticated')
  exchange.token = token
  const claims = parts.verifyToken(token)
  // What was verified before is known at once.
  const isKnown = !(claims instanceof Promise)
  parts.metrics?.count(tokens, isKnown && claims !== undefined ? 'hit' : 'miss')
  if (!isKnown) return claims.then(verified => admit(exchange, verified, parts))
  return admit(exchange, claims, parts)
}

/** The token text, and the names of the fields that are kept back from the upstream. */
function tokenOf(exchange: Exchange, parts: Parts): string | undefined {
  const { UseCustomHeader, CustomHeaderName, FallbackToAuthorization } = parts.config.Security.AgentAuth
  const raw = exchange.req.rawHeaders
  if (!UseCustomHeader) {
    exchange.tokenNames = ['authorization']
    return bearerToken(fieldValues(raw, 'authorization'))
  }
  const custom = CustomHeaderName.toLowerCase()
  const values = fieldValues(raw, custom)
  if (values.length > 0 || !FallbackToAuthorization) {
    exchange.tokenNames = [custom]
    return bearerToken(values)
  }
  exchange.tokenNames = [custom, 'authorization']
  return bearerToken(fieldValues(raw, 'authorization'))
}

/** Two tokens are none: it is not ours to choose. What the text behind the scheme is, the verifier says. */
function bearerToken(values: readonly string[]): string | undefined {
  const [value] = values
  if (values.length !== 1 || value === undefined || value.slice(0, 7).toLowerCase() !== 'bearer ') return undefined
  return value.slice(7).trim()
}

function admit(exchange: Exchange, claims: Claims | undefined, parts: Parts): Outcome {
  const agent = claims === undefined ? undefined : parts.agentOf(claims.sub)
  if (agent !== undefined) {
    exchange.claims = claims
    exchange.agent = agent
  }
  return agentProblem(agent)
}
