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
