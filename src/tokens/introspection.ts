/**
 * Opaque tokens of the identity provider, which says what they are (RFC 7662). An answer is kept for a minute at most, so
 * that a token that was revoked there ends within it. Without an answer no token is accepted.
 */
import { parseStrictJson } from '../base/json.ts'
import { isObject } from '../base/records.ts'
import { createFairQueue } from '../limits/fair-queue.ts'
import type { Clock } from '../runtime/clock.ts'
import { LRUCache } from '../runtime/lru.ts'
import type { TokenProblem } from './problem.ts'
import { type Claims, isAlive, isTime, leewaySeconds, never, type VerifiedToken } from './verify.ts'

/** Sends a form, and reads the short JSON answer whole. Rejects when there is none of status 200. */
export type SubmitForm = (
  url: URL,
  form: { readonly authorization: string; readonly body: string },
) => Promise<Uint8Array>

export interface IntrospectionParts {
  /** Undefined when the provider has no such address. */
  readonly endpoint: () => Promise<URL | undefined>
  readonly clientId: string
  readonly clientSecret: string
  readonly submitForm: SubmitForm
  readonly clock: Clock
  /** What is wrong with the claims of an active token, for this gateway. */
  readonly problemOf: (claims: Claims) => TokenProblem | undefined
  readonly onError?: ((error: unknown) => void) | undefined
}

/** @param owner whose turn a look-up takes: the agent of a known token, or the network of the client */
export type Introspect = (token: string, owner: string) => VerifiedToken | Promise<VerifiedToken>

/** An answer is used this long, and asked for again before that while the token is in use; milliseconds. */
const keptMs = 60_000
const renewAfterMs = 45_000
/** A refusal is kept so long, milliseconds: the token may be new to a part of the provider. */
const refusedMs = 5_000
const maxCached = 20_000
const maxRefused = 1_000
/** Look-ups of all owners under way, and of one of them; those of one that wait. */
const limits = { atOnce: 16, atOnceEach: 4, waitingEach: 16 }
/** Look-ups that are under way or wait, in all. */
const maxUnderway = 512
/** RFC 6750 section 2.1. */
const form = /^[\w.~+/-]{16,2048}=*$/

interface CachedAnswer {
  readonly verified: VerifiedToken
  /** Steady milliseconds of the question. */
  readonly at: number
}

export function createIntrospection(parts: IntrospectionParts): Introspect {
  const { clock } = parts
  const cache = new LRUCache<string, CachedAnswer>({ max: maxCached })
  const refused = new LRUCache<string, CachedAnswer>({ max: maxRefused })
  const underway = new Map<string, Promise<VerifiedToken>>()
  const queue = createFairQueue(limits)

  async function ask(token: string): Promise<VerifiedToken> {
    const at = clock.steady()
    try {
      const verified = await lookUp(token, parts)
      if (typeof verified === 'string') {
        cache.delete(token)
        refused.set(token, { verified, at })
      } else cache.set(token, { verified, at })
      return verified
    } catch (error) {
      parts.onError?.(error)
      return 'unverified'
    }
  }

  /** All who ask at once share one look-up. */
  function askInTurn(token: string, owner: string): Promise<VerifiedToken> {
    const before = underway.get(token)
    if (before !== undefined) return before
    if (underway.size >= maxUnderway) return Promise.resolve('unverified')
    const { promise, resolve } = Promise.withResolvers<VerifiedToken>()
    const start = (done: () => void): void => {
      void ask(token).then(verified => {
        underway.delete(token)
        done()
        resolve(verified)
      })
    }
    underway.set(token, promise)
    if (queue.enter(owner, { waits: true, start })) return promise
    underway.delete(token)
    return Promise.resolve('unverified')
  }

  return (token, owner) => {
    const found = cache.get(token)
    const age = clock.steady() - (found?.at ?? Number.NEGATIVE_INFINITY)
    if (found !== undefined && typeof found.verified !== 'string' && age < keptMs) {
      if (!isAlive(found.verified, clock.now())) return 'expired'
      if (age >= renewAfterMs) void askInTurn(token, found.verified.sub)
      return found.verified
    }
    const no = refused.get(token)
    if (no !== undefined && clock.steady() - no.at < refusedMs) return no.verified
    if (!form.test(token)) return 'malformed'
    const subject = typeof found?.verified === 'object' ? found.verified.sub : undefined
    return askInTurn(token, subject ?? owner)
  }
}

async function lookUp(token: string, parts: IntrospectionParts): Promise<VerifiedToken> {
  const url = await parts.endpoint()
  if (url === undefined) throw new TypeError('the identity provider has no introspection endpoint')
  const authorization = basicOf(parts.clientId, parts.clientSecret)
  const body = new URLSearchParams({ token, token_type_hint: 'access_token' }).toString()
  const parsed = parseStrictJson(await parts.submitForm(url, { authorization, body }))
  const answer = 'value' in parsed ? parsed.value : undefined
  if (!isObject(answer) || typeof answer['active'] !== 'boolean')
    throw new TypeError('the introspection answer is malformed')
  return answer['active'] ? claimsOf(answer, parts) : 'inactive'
}

/** RFC 6749 section 2.3.1: both are form-encoded first. */
function basicOf(id: string, secret: string): string {
  const encode = (text: string) => new URLSearchParams([['', text]]).toString().slice(1)
  return `Basic ${Buffer.from(`${encode(id)}:${encode(secret)}`).toString('base64')}`
}

/** The claims of an active token; a client that acts for itself has no subject, and is its own (RFC 9068 section 2.2). */
function claimsOf(answer: Readonly<Record<string, unknown>>, parts: IntrospectionParts): VerifiedToken {
  // Without an expiry the short life of the answer counts alone.
  const { exp = never, nbf, sub = answer['client_id'], typ, token_type: type = typ, cnf } = answer
  // Refresh tokens have no type. A token that is bound to a key of its client is no bearer token (RFC 7800, RFC 9449).
  if (typeof type !== 'string' || type.toLowerCase() !== 'bearer' || cnf !== undefined) return 'foreign'
  if (typeof sub !== 'string' || sub === '' || !isTime(exp)) return 'claims'
  if (nbf !== undefined && !isTime(nbf)) return 'claims'
  const now = parts.clock.now()
  if (nbf !== undefined && nbf > now / 1_000 + leewaySeconds) return 'not_yet_valid'
  const claims: Claims = { ...answer, sub, exp }
  return isAlive(claims, now) ? (parts.problemOf(claims) ?? claims) : 'expired'
}
