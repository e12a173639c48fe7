import { randomUUID } from 'node:crypto'
import { SignJWT } from 'jose'
import type { Config } from '../config/schema.ts'
import type { Clock } from '../runtime/clock.ts'
import type { SigningKeys } from './key.ts'

export type IssuanceSettings = Pick<
  Config['Security']['AgentAuth']['TokenIssuance'],
  'Issuer' | 'Audience' | 'Expiration'
>

export interface IssueParts {
  readonly keys: SigningKeys
  readonly settings: IssuanceSettings
  readonly clock: Clock
}

/** The agent of a token, as its claims describe it. */
export interface TokenSubject {
  readonly id: string
  readonly name: string
  readonly trustScore: number
  /** For a token of the console: until when it can be renewed, milliseconds since the epoch. */
  readonly sessionEndsAt?: number
}

/** Claim of tokens of the console: until when they can be renewed, seconds since the epoch. */
export const sessionClaim = 'session_until'

/** Answer of POST /tokens: both shapes of spec 4.1 at once. */
export interface TokenReply {
  readonly accessToken: string
  readonly token: string
  readonly tokenType: 'Bearer'
  /** ISO 8601, UTC. */
  readonly expiresAt: string
}

export type Issue = (subject: TokenSubject) => Promise<TokenReply>

/** Issues internal tokens (spec 2.4): JWT signed with HS256. */
export function createIssuer({ keys, settings, clock }: IssueParts): Issue {
  return async ({ id, name, trustScore, sessionEndsAt }) => {
    const issuedAt = Math.floor(clock.now() / 1000)
    const end = sessionEndsAt === undefined ? Infinity : Math.floor(sessionEndsAt / 1000)
    const expires = Math.min(end, issuedAt + Math.ceil(settings.Expiration / 1000))
    const session = sessionEndsAt === undefined ? {} : { [sessionClaim]: end }
    const token = await new SignJWT({ name, trust_score: trustScore, ...session })
      .setProtectedHeader({ alg: 'HS256', typ: 'JWT' })
      .setSubject(id)
      .setIssuer(settings.Issuer)
      .setAudience(settings.Audience)
      .setIssuedAt(issuedAt)
      .setExpirationTime(expires)
      .setJti(randomUUID())
      .sign(keys.current)
    return { accessToken: token, token, tokenType: 'Bearer', expiresAt: new Date(expires * 1000).toISOString() }
  }
}
