import { errors, type JWTPayload, type JWTVerifyOptions, jwtVerify } from 'jose'
import { keyPrefix } from '../base/agent-key.ts'
import { DirectMappedCache } from '../base/memo.ts'
import { LRUCache } from '../runtime/lru.ts'
import { parseCompact } from './compact.ts'
import type { IssueParts } from './issue.ts'
import type { TokenProblem } from './problem.ts'

/** Verified tokens kept, so that each is verified once. */
const maxCached = 20_000

/** Claims of a valid token, or what is wrong with it. */
export type VerifiedToken = Claims | TokenProblem

/** The connection of a client that presents a token. */
export interface Peer {
  readonly remoteAddress?: string | undefined
}

/**
 * Verifies a token: at once when it was verified before. Never rejects.
 *
 * @param peer shares look-ups at the identity provider fairly
 */
export type Verify = (token: string, peer?: Peer) => VerifiedToken | Promise<VerifiedToken>

/**
 * Verifies internal tokens: HS256 with our own keys and nothing else, regardless of the token's header
 * (RFC 8725 section 3.1).
 */
export function createVerifier(parts: IssueParts): Verify {
  const { clock } = parts
  const verified = new LRUCache<string, Claims>({ max: maxCached })
  let cache = new DirectMappedCache<Claims>(1_024)
  let { verifying } = parts.keys

  async function check(token: string): Promise<Claims | TokenProblem> {
    const before = parts.keys.verifying
    const payload = await verifySignature(token, parts)
    // Tokens were made void meanwhile.
    if (before !== parts.keys.verifying) return check(token)
    if (typeof payload === 'string') return payload
    if (!isOurs(payload, parts)) return 'claims'
    verified.set(token, payload)
    return payload
  }

  const find = (token: string): Claims | undefined => {
    const claims = verified.get(token)
    if (claims !== undefined) cache.set(token, claims)
    return claims
  }

  const forget = (): void => {
    verifying = parts.keys.verifying
    verified.clear()
    cache = new DirectMappedCache(1_024)
  }

  return token => {
    if (verifying !== parts.keys.verifying) forget()
    const claims = cache.get(token) ?? find(token)
    if (claims !== undefined) return isAlive(claims, clock.now()) ? claims : 'expired'
    const parsed = parseCompact(token)
    if (parsed === undefined) return 'malformed'
    return isOurHeader(parsed.header) ? check(token) : 'foreign'
  }
}

/**
 * Verifies keys, internal tokens, and those of the identity provider if there is one. The two kinds of tokens share no algorithm:
 * a token that is foreign to the first, or no JWT, is decided by the second alone.
 */
export function verifyByKind(verifyKey: Verify, internal: Verify, external: Verify | undefined): Verify {
  return (token, peer) => {
    if (token.startsWith(keyPrefix)) return verifyKey(token)
    const verified = internal(token)
    const isOther = verified === 'foreign' || verified === 'malformed'
    return isOther && external !== undefined ? external(token, peer) : verified
  }
}

/** We write two header parameters. Any other (kid, jku, jwk, crit, zip, ...) is not from us. */
function isOurHeader(header: Readonly<Record<string, unknown>>): boolean {
  return header['alg'] === 'HS256' && header['typ'] === 'JWT' && Object.keys(header).length === 2
}

async function verifySignature(
  token: string,
  { keys, settings, clock }: IssueParts,
): Promise<JWTPayload | TokenProblem> {
  const options: JWTVerifyOptions = {
    algorithms: ['HS256'],
    issuer: settings.Issuer,
    audience: settings.Audience,
    requiredClaims: ['sub', 'iat', 'exp'],
    currentDate: new Date(clock.now()),
  }
  for (const key of keys.verifying) {
    try {
      return (await jwtVerify(token, key, options)).payload
    } catch (error) {
      if (!(error instanceof errors.JWSSignatureVerificationFailed)) return problemOf(error)
    }
  }
  return 'unknown_key'
}

/** The error that jose found in a token. jose checks the claims only if the signature is valid. */
export function problemOf(error: unknown): TokenProblem {
  if (error instanceof errors.JWTExpired) return 'expired'
  if (error instanceof errors.JWSSignatureVerificationFailed) return 'signature'
  if (error instanceof errors.JWKSNoMatchingKey) return 'unknown_key'
  if (!(error instanceof errors.JWTClaimValidationFailed)) return 'malformed'
  const { claim } = error
  if (claim === 'iss') return 'issuer'
  if (claim === 'aud') return 'audience'
  return claim === 'nbf' && error.reason === 'check_failed' ? 'not_yet_valid' : 'claims'
}

/** Types as they must be, and no longer lifetime than we give. */
function isOurs(payload: Readonly<Record<string, unknown>>, { settings, clock }: IssueParts): payload is Claims {
  if (!areClaims(payload, clock.now())) return false
  const lifetime = payload.exp - Number(payload['iat'])
  return lifetime <= Math.ceil(settings.Expiration / 1000) + leewaySeconds
}

/** Claims of a verified token. `sub` is always the id of the agent; what else is there, the issuer decides. */
export type Claims = Readonly<Record<string, unknown>> & {
  readonly sub: string
  /** Seconds since the epoch. */
  readonly exp: number
}

/** The end of the year 9999, seconds since the epoch: the expiry of claims that have none. */
export const never = 253_402_300_799

/** How far the clocks of issuer and gateway may be apart, seconds. */
export const leewaySeconds = 60

/**
 * Whether the registered claims have the types of RFC 7519 section 4.1, with whole seconds as times, and the
 * token was not issued in the future. `now` is milliseconds since the epoch.
 */
export function areClaims(payload: Readonly<Record<string, unknown>>, now: number): payload is Claims {
  const { sub, aud, exp, nbf, iat } = payload
  if (typeof sub !== 'string' || sub === '') return false
  if (!isTime(exp)) return false
  if (nbf !== undefined && !isTime(nbf)) return false
  if (iat !== undefined && (!isTime(iat) || iat > now / 1000 + leewaySeconds)) return false
  return !Array.isArray(aud) || aud.every(one => typeof one === 'string')
}

/** A time as claims have it: whole seconds since the epoch. */
export const isTime = (value: unknown): value is number =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= 0

/** Whether a token that was verified before is still good. It ends at `exp` sharp. */
export const isAlive = (claims: { readonly exp: number }, now: number): boolean => claims.exp * 1000 > now
