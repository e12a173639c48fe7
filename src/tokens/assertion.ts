/** Assertions with which the gateway proves to other servers who it is (RFC 7521). */
import { type KeyObject, randomUUID } from 'node:crypto'
import { type JWTPayload, SignJWT } from 'jose'

/** Clocks differ: an assertion is valid from a little earlier on, seconds. */
const backdatedSeconds = 30
/** Life of an assertion, seconds. Google takes 3,600 at most, GitHub 600. */
const assertionSeconds = 300

export interface AssertionKey {
  readonly key: KeyObject
  readonly keyId: string | undefined
}

/** Claims that are undefined are left out. */
type AssertionClaims = { readonly [N in 'iss' | 'sub' | 'aud' | 'scope']?: string | undefined }

/** Seconds since the epoch, as claims have them. @param now milliseconds */
export function assertionTimes(now: number) {
  const seconds = Math.floor(now / 1_000)
  return { iat: seconds - backdatedSeconds, exp: seconds + assertionSeconds }
}

/**
 * @param now milliseconds since the epoch
 * @throws TypeError when no algorithm fits the key
 */
export async function signAssertion(
  claims: AssertionClaims,
  { key, keyId }: AssertionKey,
  now: number,
): Promise<string> {
  const header = { alg: signatureOf(key).jws, typ: 'JWT', ...(keyId === undefined ? {} : { kid: keyId }) }
  const given: JWTPayload = Object.fromEntries(Object.entries(claims).filter(([, value]) => value !== undefined))
  return new SignJWT({ ...given, ...assertionTimes(now), jti: randomUUID() }).setProtectedHeader(header).sign(key)
}

/**
 * The algorithm of a key: its name in a header (RFC 7518 section 3.1), and as Web Cryptography describes it.
 *
 * @throws TypeError when none fits
 */
export function signatureOf(key: KeyObject) {
  const { namedCurve } = key.asymmetricKeyDetails ?? {}
  if (key.asymmetricKeyType === 'rsa')
    return { jws: 'RS256', webCrypto: { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256' } }
  if (key.asymmetricKeyType === 'ed25519') return { jws: 'EdDSA', webCrypto: { name: 'Ed25519' } }
  if (namedCurve === 'prime256v1') return { jws: 'ES256', webCrypto: { name: 'ECDSA', namedCurve: 'P-256' } }
  if (namedCurve === 'secp384r1') return { jws: 'ES384', webCrypto: { name: 'ECDSA', namedCurve: 'P-384' } }
  throw new TypeError('The key must be of RSA, P-256, P-384 or Ed25519.')
}
