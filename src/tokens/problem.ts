import { DirectMappedCache } from '../base/memo.ts'
import { type Refusal, refuse } from '../base/refusals.ts'

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

const newToken = 'Get a new one with POST /tokens, or use a key of the agent.'
const remedies: Readonly<Partial<Record<TokenProblem, string>>> = {
  malformed: 'Send a token from POST /tokens, or a key of the agent.',
  not_yet_valid: 'Compare the clocks of the two machines.',
  issuer: 'Send a token from POST /tokens, or of the configured identity provider.',
  no_key: 'Ask an admin for a new key.',
  unknown_agent: 'Ask an admin to register the agent.',
}

/** 401 for a token that was presented in `field`, with the reason in the challenge (RFC 6750 section 3). */
export function refuseToken(problem: TokenProblem, field: string): Refusal {
  // A new token would not help: the same one may be fine in a moment.
  if (problem === 'unverified') {
    const detail = `The token in ${field} ${texts[problem]} now. Try again.`
    return refuse('busy', detail, { cause: problem })
  }
  const reason = `The token in ${field} ${texts[problem]}`
  return challenge(problem, { reason, remedy: remedies[problem] ?? newToken, error: 'invalid_token' })
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

/**
 * Values that came last. The token of each is one string from then on, so that the tables of verified tokens find it without
 * comparing its characters.
 */
const bearers = new DirectMappedCache<string>(1_024)
/** Longer values are not kept, characters. */
const maxKept = 2_048

/** The text behind `Bearer`; undefined when there is none. */
export function bearerToken(value: string): string | undefined {
  const known = bearers.get(value)
  if (known !== undefined) return known
  if (value.slice(0, 7).toLowerCase() !== 'bearer ') return undefined
  const token = value.slice(7).trim()
  if (value.length <= maxKept) bearers.set(value, token)
  return token
}

/** The password of `Basic` credentials (RFC 7617 section 2); undefined when there is none. */
export const basicPassword = (value: string): string | undefined => basicPair(value)?.[1]

/** Name and password. */
function basicPair(value: string): readonly [string, string] | undefined {
  if (value.slice(0, 6).toLowerCase() !== 'basic ') return undefined
  const pair = Buffer.from(value.slice(6), 'base64').toString('latin1')
  const colon = pair.indexOf(':')
  return colon < 0 ? undefined : [pair.slice(0, colon), pair.slice(colon + 1)]
}

const ofToken = 'POST /tokens gives one; a key of the agent is one too.'

/** 401 for a request without a token. */
export function refuseMissing(field: string): Refusal {
  return challenge('missing', { reason: `Send the token as ${field}: Bearer <token>`, remedy: ofToken })
}

/** 401 for a field that does not have one token. */
export function refuseUnreadable(field: string): Refusal {
  const reason = `Send one token, as ${field}: Bearer <token>`
  return challenge('unreadable', { reason, remedy: ofToken, error: 'invalid_request' })
}

const basic = 'Basic realm="agent-gateway", charset="UTF-8"'
const basicChallenge = ['WWW-Authenticate', basic]

/**
 * The same 401 for a client that may present its key as a password: git, pip and container tools do so only when asked.
 * They take the first challenge that they know.
 */
export function withBasic(refusal: Refusal): Refusal {
  return refusal.refusal === 'unauthenticated'
    ? { ...refusal, headers: [...basicChallenge, ...(refusal.headers ?? [])] }
    : refusal
}

/**
 * The token in the values of `Proxy-Authorization`: behind Bearer, or the password of Basic with any name, or the name with an
 * empty password.
 */
export function proxyToken(values: readonly string[]): string | Refusal {
  const [value, ...more] = values
  if (more.length > 0) return refuse('invalid_request', 'A request must have at most one Proxy-Authorization.', closing)
  if (value === undefined) return refuseMissing('Proxy-Authorization')
  return (bearerToken(value) ?? basicToken(value)) || refuseUnreadable('Proxy-Authorization')
}

function basicToken(value: string): string | undefined {
  const pair = basicPair(value)
  return pair && (pair[1] || pair[0])
}

const closing = { headers: ['Connection', 'close'] }

/**
 * The same 401 for a client that has the gateway as its proxy (RFC 9110 section 15.5.8). Clients take the first challenge that
 * they know, and most know no other than Basic.
 */
export function asProxy({ detail, cause, headers = [] }: Refusal): Refusal {
  const given = headers.filter((_, at) => headers[at - 1] === 'WWW-Authenticate')
  const challenges = [basic, given[0] ?? 'Bearer'].flatMap(challenge => ['Proxy-Authenticate', challenge])
  return refuse('proxy_authentication_required', detail, { headers: [...challenges, ...closing.headers], cause })
}

interface Challenge {
  /** A sentence without its full stop. */
  readonly reason: string
  readonly remedy: string
  /** Code of RFC 6750 section 3.1; none for a request without a token. */
  readonly error?: string
}

function challenge(cause: string, { reason, remedy, error }: Challenge): Refusal {
  const code = error === undefined ? '' : `error="${error}", `
  const headers = ['WWW-Authenticate', `Bearer ${code}error_description="${reason}"`]
  return refuse('unauthenticated', `${reason}. ${remedy}`, { headers, cause })
}
