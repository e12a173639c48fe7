import { foldName, hopByHopRequest, hopByHopResponse, isDisguised, token } from '../base/field-names.ts'
import { DirectMappedCache, Memo } from '../base/memo.ts'
import { ownVersion } from '../runtime/version.ts'

/** Properties of a header field name, computed once: nearly all messages use the same few dozen names. */
export interface FieldName {
  readonly lower: string
  /** It is a valid field name (RFC 9110 section 5.1). */
  readonly isToken: boolean
  /** The name as a lenient server reads it (`foldName`). */
  readonly folded: string
  /** A lenient server may read it as a field that frames the message or belongs to the gateway. */
  readonly isDisguised: boolean
  /** For one connection only, or set again for the next one (spec 4.4, RFC 9110 section 7.6.1). */
  readonly hopByHopRequest: boolean
  /** For one connection only (RFC 9110 section 7.6.1). */
  readonly hopByHopResponse: boolean
  /** It marks answers of the gateway: an upstream must not be able to send it. */
  readonly isOurs: boolean
  /**
   * How the field of an answer directs the client: where to go, what to send or what to store; undefined for other fields.
   */
  readonly leads: Lead | undefined
  /** The gateway itself acts on this field of a request. */
  readonly steersGateway: boolean
}

/** Bounds of the cache, since callers choose the names. */
const maxCached = 1_024
const maxCachedLength = 64
const memo = new Memo<string, FieldName>(maxCached)
const cache = new DirectMappedCache<FieldName>(512)

/** Fields that `readFields` notes. */
const steering: ReadonlySet<string> = new Set([
  ...['host', 'content-length', 'transfer-encoding', 'connection', 'upgrade', 'via'],
  ...['max-forwards', 'idempotency-key', 'traceparent', 'mcp-method', 'mcp-name'],
  ...['mcp-session-id', 'mcp-protocol-version', 'last-event-id', 'accept', 'sec-fetch-dest'],
])

/** Kinds of such fields, as docs/requests.md lists them. `origin`: settings that the client stores for the whole origin. */
export type Lead = 'location' | 'link' | 'refresh' | 'cookie' | 'challenge' | 'host' | 'origin' | 'proxy'

const leading: ReadonlyMap<string, Lead> = new Map<string, Lead>([
  ['location', 'location'],
  ['content-location', 'location'],
  ['link', 'link'],
  ['refresh', 'refresh'],
  ['set-cookie', 'cookie'],
  ['www-authenticate', 'challenge'],
  // About the name and port that the client called: they are the gateway's, on virtual hosts too.
  ['alt-svc', 'host'],
  ['strict-transport-security', 'host'],
  // Only proxies may send them (RFC 9110 sections 11.7.1 and 11.7.3).
  ['proxy-authenticate', 'proxy'],
  ['proxy-authentication-info', 'proxy'],
  ['accept-ch', 'origin'],
  ['clear-site-data', 'origin'],
  ['critical-ch', 'origin'],
  ['nel', 'origin'],
  ['origin-trial', 'origin'],
  ['report-to', 'origin'],
  ['reporting-endpoints', 'origin'],
  ['service-worker-allowed', 'origin'],
  ['set-login', 'origin'],
  ['speculation-rules', 'origin'],
])

/** @param name as received */
export function fieldName(name: string): FieldName {
  return cache.get(name) ?? find(name)
}

function find(name: string): FieldName {
  const found = memo.get(name) ?? describe(name)
  if (name.length <= maxCachedLength) cache.set(name, found)
  return found
}

function describe(name: string): FieldName {
  const lower = name.toLowerCase()
  const described = {
    lower,
    isToken: token.test(name),
    folded: foldName(name),
    isDisguised: isDisguised(lower),
    hopByHopRequest: hopByHopRequest.has(lower),
    hopByHopResponse: hopByHopResponse.has(lower),
    isOurs: isOwnField(lower),
    leads: leading.get(lower),
    steersGateway: steering.has(lower),
  }
  if (name.length > maxCachedLength) return described
  memo.set(name, described)
  return described
}

/** In every answer: the id of the request in the log. */
export const requestIdField = 'Gateway-Request-Id'

/** In every answer of the gateway itself: the version of openapi.json, which is that of the package. */
export const versionField = ['Gateway-Version', ownVersion()] as const

const ownNames: ReadonlySet<string> = new Set(['gateway-error', 'gateway-version', requestIdField.toLowerCase()])
const ownPrefixes = ['gateway-hitl-', 'gateway-upstream-']

/** Whether a field marks answers of the gateway. */
export function isOwnField(lowerName: string): boolean {
  return ownNames.has(lowerName) || ownPrefixes.some(prefix => lowerName.startsWith(prefix))
}
