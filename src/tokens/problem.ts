import { type Refusal, refuse } from '../errors.ts'

/** What is wrong with a token. Only `unknown_agent` depends on agents, and only holders of a verified token see it. */
const texts = {
  malformed: 'is not a JSON Web Token',
  foreign: 'is not of a kind that is accepted here',
  unknown_key: 'is signed with a key that is not known here',
  signature: 'has a wrong signature',
  expired: 'has expired',
  not_yet_valid: 'is not valid yet',
  issuer: 'is from an issuer that is not accepted here',
  audience: 'is for another audience',
  claims: 'has a missing or invalid claim',
  inactive: 'is not active at the identity provider',
  unverified: 'could not be verified at the identity provider',
  no_key: 'is not a key that is known here; it may have been revoked',
  unknown_agent: 'is for an agent that is not registered here',
} as const

export type TokenProblem = keyof typeof texts

/** 401 for a token that was presented in `field`, with the reason in the challenge (RFC 6750 section 3). */
export function refuseToken(problem: TokenProblem, field: string): Refusal {
  // A new token would not help: the same one may be fine in a moment.
  if (problem === 'unverified') {
    const detail = `The token in ${field} ${texts[problem]} now. Try again.`
    return refuse('busy', detail, { headers: ['Retry-After', '1'], cause: problem })
  }
  return challenge(problem, `error="invalid_token", error_description="The token in ${field} ${texts[problem]}"`)
}

/**
 * The text behind `Bearer` in `field`; else a 401 that says how to present a token. Values that differ are rejected: servers
 * differ in which one counts.
 */
export function presentedToken(values: readonly string[], field: string): string | Refusal {
  const [value] = values
  if (value === undefined) return refuseMissing(field)
  return (values.every(other => other === value) ? bearerToken(value) : undefined) ?? refuseUnreadable(field)
}

/** The text behind `Bearer`; undefined when there is none. */
export function bearerToken(value: string): string | undefined {
  return value.slice(0, 7).toLowerCase() === 'bearer ' ? value.slice(7).trim() : undefined
}

/** The password of `Basic` credentials (RFC 7617 section 2); undefined when there is none. */
export function basicPassword(value: string): string | undefined {
  if (value.slice(0, 6).toLowerCase() !== 'basic ') return undefined
  const pair = Buffer.from(value.slice(6), 'base64').toString('latin1')
  const colon = pair.indexOf(':')
  return colon < 0 ? undefined : pair.slice(colon + 1)
}

/** 401 for a request without a token. */
export function refuseMissing(field: string): Refusal {
  return challenge('missing', `error_description="Send the token as ${field}: Bearer <token>"`)
}

/** 401 for a field that does not have one token. */
export function refuseUnreadable(field: string): Refusal {
  return challenge(
    'unreadable',
    `error="invalid_request", error_description="Send one token, as ${field}: Bearer <token>"`,
  )
}

const basicChallenge = ['WWW-Authenticate', 'Basic realm="agent-gateway", charset="UTF-8"']

/**
 * The same 401 for a client that may present its key as a password: git, pip and container tools do so only when asked.
 * They take the first challenge that they know.
 */
export function withBasic(refusal: Refusal): Refusal {
  return refusal.refusal === 'unauthenticated'
    ? { ...refusal, headers: [...basicChallenge, ...(refusal.headers ?? [])] }
    : refusal
}

function challenge(cause: string, parameters: string): Refusal {
  return refuse('unauthenticated', undefined, { headers: ['WWW-Authenticate', `Bearer ${parameters}`], cause })
}
