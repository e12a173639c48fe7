import { hashKey, isAgentKey } from '../base/agent-key.ts'
import type { Clock } from '../runtime/clock.ts'
import { LRUCache } from '../runtime/lru.ts'
import type { AgentKey } from '../storage/store.ts'
import { type Claims, isAlive, never, type Verify } from './verify.ts'

export interface KnownKey extends Omit<AgentKey, 'hash'> {
  readonly agentId: string
}

export interface KeyVerifierParts {
  readonly clock: Clock
  readonly byKeyHash: (hash: string) => KnownKey | undefined
  /** Called for a use of a key, but not for each. */
  readonly onUse: (keyId: string, at: number) => void
}

/** The claims with the id and the name of the key; other tokens do not have them. */
export const keyIdClaim = 'key_id'
export const keyNameClaim = 'key_name'

interface VerifiedKey {
  readonly hash: string
  key: KnownKey | undefined
  claims: Claims
  notedAt: number
}

/** Keys whose hash is remembered. */
const maxCached = 20_000
/** Uses of a key are noted no more often than this, milliseconds. */
const noteEveryMs = 600_000

/**
 * Verifies keys. Only the hash of a text is remembered; whether there is such a key the registry says each time, so that
 * a revoked one is gone at once.
 */
export function createKeyVerifier({ clock, byKeyHash, onUse }: KeyVerifierParts): Verify {
  const cache = new LRUCache<string, VerifiedKey>({ max: maxCached })

  const learn = (token: string): VerifiedKey | undefined => {
    if (!isAgentKey(token)) return undefined
    const claims = { sub: '', exp: 0 }
    return { hash: hashKey(token), key: undefined, claims, notedAt: Number.NEGATIVE_INFINITY }
  }

  return token => {
    const found = cache.get(token) ?? learn(token)
    const key = found && byKeyHash(found.hash)
    if (found === undefined || key === undefined) {
      cache.delete(token)
      return 'no_key'
    }
    if (found.key !== key) {
      found.key = key
      found.claims = claimsOf(key)
      cache.set(token, found)
    }
    const now = clock.now()
    if (!isAlive(found.claims, now)) return 'expired'
    if (now - found.notedAt >= noteEveryMs) {
      found.notedAt = now
      onUse(key.id, now)
    }
    return found.claims
  }
}

function claimsOf({ id, name, agentId, createdAt, expiresAt }: KnownKey): Claims {
  const exp = expiresAt === null ? never : Math.floor(expiresAt / 1_000)
  return { sub: agentId, iat: Math.floor(createdAt / 1_000), exp, [keyIdClaim]: id, [keyNameClaim]: name }
}

export function keyIdOf(claims: Readonly<Record<string, unknown>> | undefined): string | undefined {
  const id = claims?.[keyIdClaim]
  return typeof id === 'string' ? id : undefined
}
