import { type JWTPayload, type JWTVerifyOptions, jwtVerify } from 'jose'
import { networkOf } from '../base/address.ts'
import type { Config } from '../config/schema.ts'
import type { Clock } from '../runtime/clock.ts'
import { LRUCache } from '../runtime/lru.ts'
import type { AgentRecord } from '../storage/store.ts'
import { keyIdClaim, keyNameClaim } from './agent-key.ts'
import { parseCompact } from './compact.ts'
import { createIntrospection, type Introspect, type SubmitForm } from './introspection.ts'
import {
  createKeySet,
  type Discovery,
  type DiscoveryOptions,
  discover,
  type FetchDocument,
  type KeySet,
  type ProviderKeys,
  withoutSlash,
} from './keyset.ts'
import type { TokenProblem } from './problem.ts'
import { areClaims, type Claims, isAlive, leewaySeconds, problemOf, type Verify } from './verify.ts'

export type ExternalSettings = Pick<
  Config['Security']['AgentAuth']['ExternalIdentity'],
  'Provider' | 'Jwt' | 'Introspection'
>

export interface ExternalParts {
  readonly settings: ExternalSettings
  readonly clock: Clock
  readonly fetchDocument: FetchDocument
  readonly submitForm: SubmitForm
  /** By UUID in any letter case. */
  readonly agent: (id: string) => AgentRecord | undefined
  readonly agentOfSubject: (subject: string) => AgentRecord | undefined
  /** Called with the reason why the provider's keys could not be fetched. */
  readonly onError?: ((error: unknown) => void) | undefined
}

export interface External {
  /** Whether the token is valid and bound to this agent (POST /tokens). Never rejects. */
  verifyFor(token: string, agent: AgentRecord): Promise<boolean>
  /**
   * Claims of a token sent on /proxy itself. `sub` is the id of the agent it is bound to, `external_sub` the
   * subject at the provider. The binding is looked up each time, so that a change of it counts at once.
   */
  readonly verify: Verify
  readonly warnings: readonly string[]
}

const section = 'Security:AgentAuth:ExternalIdentity'
const maxCached = 20_000
/** Asymmetric only: a public key must never pass for a shared secret. */
const algorithms = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519']
const headerNames = new Set(['alg', 'typ', 'kid', 'x5t', 'x5t#S256'])
/** Media types of access tokens (RFC 7519 section 5.1, RFC 9068 section 2.1). */
const headerTypes = new Set(['jwt', 'at+jwt', 'application/at+jwt'])
/** Claims that only ID tokens have (OpenID Connect Core 1.0 sections 2 and 3.3.2.11). */
const idTokenClaims = ['nonce', 'at_hash', 'c_hash']

/**
 * Tokens of the configured identity provider (spec 4.1 rule 4, 5.7). Undefined when none is configured.
 */
export function createExternal(parts: ExternalParts): External | undefined {
  const { Provider, Jwt } = parts.settings
  if (Provider === undefined) return undefined
  const authority = new URL(Jwt.Authority ?? '')
  const { fetchDocument, clock, onError } = parts
  const where = {
    authority,
    requireHttps: Jwt.RequireHttpsMetadata,
    checkIssuer: Jwt.ValidateIssuer,
    fetchDocument,
  }
  const keySet = createKeySet({ ...where, clock, onError })
  const verifyToken = createTokenCheck(keySet, openIntrospection(where, parts), parts)
  return {
    async verifyFor(token, agent) {
      const claims = await verifyToken(token)
      return typeof claims !== 'string' && isBound(claims, agent, Jwt.AgentIdClaim)
    },
    verify(token, peer) {
      const claims = verifyToken(token, peer)
      return claims instanceof Promise ? claims.then(found => withAgent(found, parts)) : withAgent(claims, parts)
    },
    warnings: warningsOf(authority, Jwt),
  }
}

function warningsOf(authority: URL, jwt: ExternalSettings['Jwt']): readonly string[] {
  const warnings: string[] = []
  if (authority.protocol === 'http:') warnings.push(`${section}: keys of the identity provider come over plain http`)
  if (!jwt.ValidateIssuer) warnings.push(`${section}: ValidateIssuer is false, the issuer of tokens is not checked`)
  if (!jwt.ValidateAudience) warnings.push(`${section}: ValidateAudience is false, tokens for others are accepted`)
  return warnings
}

/** A token that was verified, and with which keys. */
interface Signed {
  readonly claims: Claims
  readonly keys: ProviderKeys
}

/** Verifies signature and claims, not yet whose token it is. */
function createTokenCheck(
  keySet: KeySet,
  introspect: Introspect | undefined,
  { settings, clock }: ExternalParts,
): Verify {
  const cache = new LRUCache<string, Signed>({ max: maxCached })

  async function check(token: string): Promise<Claims | TokenProblem> {
    const verified = await verifyWith(keySet, token, settings, clock)
    if (typeof verified === 'string') return verified
    const { payload, keys } = verified
    if (!areClaims(payload, clock.now())) return 'claims'
    if (!isAccessToken(payload)) return 'foreign'
    if (!isAlive(payload, clock.now())) return 'expired'
    cache.set(token, { claims: payload, keys })
    return payload
  }

  return (token, peer) => {
    const before = cache.get(token)
    // A token is as good as the keys that it was verified with: the provider may have withdrawn its key.
    if (before !== undefined && !isAlive(before.claims, clock.now())) return 'expired'
    if (before !== undefined && before.keys === keySet.known()) return before.claims
    const parsed = parseCompact(token)
    if (parsed === undefined) return introspect?.(token, networkOf(peer?.remoteAddress ?? '')) ?? 'malformed'
    return isAccepted(parsed.header) ? check(token) : 'foreign'
  }
}

/** Undefined when opaque tokens are not accepted. */
function openIntrospection(where: DiscoveryOptions, parts: ExternalParts): Introspect | undefined {
  const { Endpoint, ClientId, ClientSecret } = parts.settings.Introspection
  if (ClientId === undefined || ClientSecret === undefined) return undefined
  const { submitForm, clock, onError } = parts
  let found: Promise<Discovery> | undefined
  const published = async (): Promise<URL | undefined> => {
    found ??= discover(where)
    return (await found).introspectionUrl
  }
  return createIntrospection({
    endpoint: Endpoint === undefined ? published : async () => new URL(Endpoint),
    clientId: ClientId,
    clientSecret: ClientSecret,
    problemOf: claims => foreignProblem(claims, parts.settings),
    onError(error) {
      // The address may have changed.
      found = undefined
      onError?.(error)
    },
    ...{ submitForm, clock },
  })
}

/** What a signed token is checked for by jose; the provider may leave out its own name. */
function foreignProblem(claims: Claims, { Jwt }: ExternalSettings): TokenProblem | undefined {
  const { iss, aud } = claims
  if (!isAccessToken(claims)) return 'foreign'
  const isOther = typeof iss !== 'string' || withoutSlash(iss) !== withoutSlash(new URL(Jwt.Authority ?? '').href)
  if (Jwt.ValidateIssuer && iss !== undefined && isOther) return 'issuer'
  return Jwt.ValidateAudience && ![aud].flat().includes(Jwt.Audience) ? 'audience' : undefined
}

function isAccepted(header: Readonly<Record<string, unknown>>): boolean {
  const { alg, typ, kid } = header
  if (typeof alg !== 'string' || !algorithms.includes(alg)) return false
  if (typ !== undefined && !(typeof typ === 'string' && headerTypes.has(typ.toLowerCase()))) return false
  if (kid !== undefined && typeof kid !== 'string') return false
  return Object.keys(header).every(name => headerNames.has(name))
}

/** Providers mark what is not for others: Keycloak by `typ`, Cognito and Hydra by `token_use`, all by the claims of ID tokens. */
function isAccessToken(payload: Claims): boolean {
  const { typ, token_use: use } = payload
  if (use !== undefined && use !== 'access' && use !== 'access_token') return false
  if (typ !== undefined && !(typeof typ === 'string' && ['bearer', 'jwt', 'at+jwt'].includes(typ.toLowerCase())))
    return false
  return !idTokenClaims.some(name => Object.hasOwn(payload, name))
}

async function verifyWith(keySet: KeySet, token: string, settings: ExternalSettings, clock: Clock) {
  const keys = await keySet.current()
  if (keys === undefined) return 'unknown_key'
  const payload = await verifyOnce(keys, token, settings, clock)
  if (payload !== 'unknown_key') return typeof payload === 'string' ? payload : { payload, keys }
  // The provider may have new keys.
  const newer = await keySet.newer()
  if (newer === undefined) return 'unknown_key'
  const again = await verifyOnce(newer, token, settings, clock)
  return typeof again === 'string' ? again : { payload: again, keys: newer }
}

async function verifyOnce(
  keys: ProviderKeys,
  token: string,
  { Jwt }: ExternalSettings,
  clock: Clock,
): Promise<JWTPayload | TokenProblem> {
  const options: JWTVerifyOptions = {
    algorithms,
    requiredClaims: ['sub', 'exp'],
    clockTolerance: leewaySeconds,
    currentDate: new Date(clock.now()),
  }
  if (Jwt.ValidateIssuer) options.issuer = keys.issuer
  // No audience matches an empty list.
  if (Jwt.ValidateAudience) options.audience = Jwt.Audience ?? []
  try {
    return (await jwtVerify(token, keys.find, options)).payload
  } catch (error) {
    return problemOf(error)
  }
}

/** The binding rule: the token names the agent, or its subject is the one the agent was registered with. */
function isBound(claims: Claims, agent: AgentRecord, agentIdClaim: string): boolean {
  return agentIdIn(claims, agentIdClaim) === agent.id || claims.sub === agent.externalSubject
}

function agentIdIn(claims: Claims, name: string): string | undefined {
  const value = Object.hasOwn(claims, name) ? claims[name] : undefined
  return typeof value === 'string' ? value.toLowerCase() : undefined
}

function withAgent(claims: Claims | TokenProblem, parts: ExternalParts): Claims | TokenProblem {
  if (typeof claims === 'string') return claims
  const { settings, agent, agentOfSubject } = parts
  const named = agentIdIn(claims, settings.Jwt.AgentIdClaim)
  const found = named === undefined ? agentOfSubject(claims.sub) : agent(named)
  if (found === undefined) return 'unknown_agent'
  return { ...(saysKey(claims) ? withoutKey(claims) : claims), sub: found.id, external_sub: claims.sub }
}

const saysKey = (claims: Claims): boolean => Object.hasOwn(claims, keyIdClaim) || Object.hasOwn(claims, keyNameClaim)

/** Only the gateway says which of its keys was used, no provider. */
function withoutKey({ [keyIdClaim]: _, [keyNameClaim]: __, ...theirs }: Claims) {
  return theirs
}
