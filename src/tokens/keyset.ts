import { createLocalJWKSet, type JSONWebKeySet, type LocalJWKSet } from 'jose'
import { isObject } from '../base/records.ts'
import type { Clock } from '../runtime/clock.ts'

/** Keys are fetched again at this age: tokens of a withdrawn key end within it. */
const freshMs = 300_000
/** Shortest time between two fetches, even for tokens with unknown keys. */
const cooldownMs = 30_000
/** Keys are used this long when the provider cannot be reached. */
const lastGoodMs = 24 * 3_600_000

/** Reads a small document as a whole. Rejects when it cannot be fetched. */
export type FetchDocument = (url: URL) => Promise<Uint8Array>

export interface ProviderKeys {
  readonly issuer: string
  /** The key for a token's header, by jose. */
  readonly find: LocalJWKSet
}

/** Addresses of the provider (OpenID Connect Discovery 1.0 section 3, RFC 8414 section 2). */
export interface Discovery {
  readonly issuer: string
  readonly keysUrl: URL
  readonly introspectionUrl: URL | undefined
}

export interface DiscoveryOptions {
  /** Security:AgentAuth:ExternalIdentity:Jwt:Authority. */
  readonly authority: URL
  readonly requireHttps: boolean
  /** The discovery document must name the authority as its issuer (OpenID Connect Discovery 1.0 section 4.3). */
  readonly checkIssuer: boolean
  readonly fetchDocument: FetchDocument
}

export interface KeySetOptions extends DiscoveryOptions {
  readonly clock: Clock
  /** Called with the reason why the keys could not be fetched. */
  readonly onError?: ((error: unknown) => void) | undefined
}

/** The public keys of the identity provider. */
export interface KeySet {
  /**
   * The result of `current` if it is there at once; else undefined. The same object as long as the provider has the same
   * keys: what was verified with another one must be verified again.
   */
  known(): ProviderKeys | undefined
  /** Undefined when the provider gives none. */
  current(): Promise<ProviderKeys | undefined>
  /** Newer keys, for a token whose key is not among the current ones. Undefined when it is too early to ask. */
  newer(): Promise<ProviderKeys | undefined>
}

export function createKeySet(options: KeySetOptions): KeySet {
  const { clock } = options
  let keys: { readonly value: ProviderKeys; readonly document: Uint8Array; readonly at: number } | undefined
  let discovery: Discovery | undefined
  let triedAt = Number.NEGATIVE_INFINITY
  let underway: Promise<ProviderKeys | undefined> | undefined
  let hasFailed = false

  async function load(): Promise<ProviderKeys | undefined> {
    // The age counts from the request: the provider may withdraw a key while its answer is on the way.
    const at = clock.steady()
    try {
      discovery ??= await discover(options)
      const { issuer, keysUrl } = discovery
      const document = await options.fetchDocument(keysUrl)
      const isSame = keys?.value.issuer === issuer && Buffer.compare(keys.document, document) === 0
      const value = isSame && keys !== undefined ? keys.value : { issuer, find: readKeys(document) }
      keys = { value, document, at }
      hasFailed = false
      return value
    } catch (error) {
      // The address of the keys may have changed.
      discovery = undefined
      hasFailed = true
      options.onError?.(error)
      return undefined
    } finally {
      underway = undefined
    }
  }

  /** All who ask at once share one fetch. */
  function fetchNow(): Promise<ProviderKeys | undefined> {
    if (underway !== undefined) return underway
    if (clock.steady() - triedAt < cooldownMs) return Promise.resolve(undefined)
    triedAt = clock.steady()
    underway = load()
    return underway
  }

  const ageOfKeys = () => clock.steady() - (keys?.at ?? Number.NEGATIVE_INFINITY)

  const known = (): ProviderKeys | undefined => {
    if (ageOfKeys() < freshMs) return keys?.value
    if (!hasFailed || ageOfKeys() >= lastGoodMs) return undefined
    // Requests do not wait for a provider that cannot be reached.
    void fetchNow()
    return keys?.value
  }

  return {
    known,
    async current() {
      const fetched = known() ?? (await fetchNow())
      return fetched ?? (ageOfKeys() < lastGoodMs ? keys?.value : undefined)
    },
    newer: fetchNow,
  }
}

/** Rejects when the document cannot be had, or is not the authority's. */
export async function discover(options: DiscoveryOptions): Promise<Discovery> {
  const base = withoutSlash(options.authority.href)
  const document = parseObject(await options.fetchDocument(new URL(`${base}/.well-known/openid-configuration`)))
  const { issuer, jwks_uri: keysUrl, introspection_endpoint: introspectionUrl } = document
  if (typeof issuer !== 'string' || typeof keysUrl !== 'string') throw new TypeError('discovery document is incomplete')
  if (options.checkIssuer && withoutSlash(issuer) !== base) {
    throw new TypeError(`discovery document of ${base} names another issuer: ${issuer}`)
  }
  const urlOf = (text: string, name: string): URL => {
    const url = new URL(text)
    const isAllowed = url.protocol === 'https:' || (url.protocol === 'http:' && !options.requireHttps)
    if (!isAllowed) throw new TypeError(`${name} is not https: ${text}`)
    return url
  }
  return {
    issuer,
    keysUrl: urlOf(keysUrl, 'jwks_uri'),
    introspectionUrl:
      typeof introspectionUrl === 'string' ? urlOf(introspectionUrl, 'introspection_endpoint') : undefined,
  }
}

function readKeys(document: Uint8Array): LocalJWKSet {
  // jose checks the shape, and takes public keys only.
  return createLocalJWKSet(parseObject(document) as Readonly<Record<string, unknown>> & JSONWebKeySet)
}

function parseObject(bytes: Uint8Array): Readonly<Record<string, unknown>> {
  const value: unknown = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  if (!isObject(value)) throw new TypeError('not a JSON object')
  return value
}

export const withoutSlash = (url: string): string => url.replace(/\/$/, '')
