import { refuseStatus } from '../../agents/agent.ts'
import { refuse } from '../../base/refusals.ts'
import { tokens } from '../../telemetry/layout.ts'
import type { Claims } from '../../tokens/claims.ts'
import { refuseToken, type TokenProblem } from '../../tokens/problem.ts'
import type { Exchange, StepOutcome, StepResult } from '../exchange.ts'
import type { Parts } from '../parts.ts'
import { dropCredentials, tokenField, tokenOf } from './credential.ts'

/**
 * Finds the agent behind the token (spec 5.1, 5.2). The token names the agent; the registry says what the agent may do now.
 */
export function authenticate(exchange: Exchange, parts: Parts): StepResult {
  const fenced = parts.fencedAs()
  if (fenced !== undefined) return refuse(fenced)
  const token = tokenOf(exchange, parts)
  if (typeof token !== 'string') return token
  exchange.token = token
  if (exchange.addressing.dropsCredentials) dropCredentials(exchange)
  const claims = parts.verifyToken(token, exchange.socket)
  // A token that was verified before is known at once.
  const isKnown = !(claims instanceof Promise)
  parts.metrics.count(tokens, isKnown && typeof claims !== 'string' ? 'hit' : 'miss')
  if (!isKnown) return claims.then(verified => findAgent(exchange, verified, parts))
  return findAgent(exchange, claims, parts)
}

function findAgent(exchange: Exchange, claims: Claims | TokenProblem, parts: Parts): StepOutcome {
  const agent = typeof claims === 'string' ? undefined : parts.agentOf(claims.sub)
  if (typeof claims === 'string' || agent === undefined) {
    const problem = typeof claims === 'string' ? claims : 'unknown_agent'
    return refuseToken(problem, tokenField(exchange, parts))
  }
  exchange.claims = claims
  exchange.agent = agent
  return refuseStatus(agent.status)
}
