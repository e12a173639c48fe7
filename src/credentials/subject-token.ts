import { hash } from 'node:crypto'
import { type Refusal, refuse } from '../base/refusals.ts'
import { parseCompact } from '../tokens/compact.ts'
import type { Claims } from '../tokens/verify.ts'

/** The token with which an agent calls, for credentials that are had for it (RFC 8693): what they give is of this token alone. */
export interface SubjectToken {
  readonly agentId: string
  /** SHA-256, hex: names it where it must not be kept. */
  readonly digest: string
  /** Undefined for a held request, which does not have it: the gateway may still know it. */
  readonly token: string | undefined
  /** Milliseconds since the epoch. */
  readonly endsAt: number
}

/** What a request says of the token that it came with. */
export interface SubjectFacts {
  readonly agentId: string
  readonly claims: Partial<Claims>
  readonly token: string
}

/** Undefined unless it is a JWT of the identity provider: keys, and tokens of the gateway, mean nothing elsewhere. */
export function subjectTokenOf({ agentId, claims, token }: SubjectFacts): SubjectToken | undefined {
  const { exp, external_sub: subject } = claims
  if (subject === undefined || exp === undefined || parseCompact(token) === undefined) return undefined
  return { agentId, digest: hash('sha256', token), token, endsAt: exp * 1_000 }
}

/** @param isApproved a person reads it, not the agent */
export function refuseSubject(name: string, isApproved: boolean): Refusal {
  return refuse('own_token_needed', isApproved ? gone : undefined, { members: { credential: name } })
}

/** The token server does not take it. */
export const refuseExchange = (name: string): Refusal =>
  refuse('own_token_needed', refused, { members: { credential: name } })

const gone =
  'The token with which the agent sent this request has ended, or this gateway does not have it any more. It was not sent: deny it, or let it lapse, and let the agent send it again.'
const refused =
  'The token server does not exchange the token with which you call. Get a new one from the identity provider; if it is refused again, ask an admin.'
