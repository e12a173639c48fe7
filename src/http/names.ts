import { foldName, hopByHopRequest, hopByHopResponse, isDisguised, token } from '../base/field-names.ts'
import { Near } from '../base/near.ts'

/** Properties of a header field name, computed once: nearly all messages use the same few dozen names. */
export interface FieldName {
  readonly lower: string
  /** It is a valid field name (RFC 9110 section 5.1). */
  readonly isToken: boolean
  /** The name as a lenient server reads it (`foldName`). */
  readonly folded: string
  /** A lenient server may take it for a field that frames the message or belongs to the gateway. */
  readonly isDisguised: boolean
  /** For one connection only, or set again for the next one (spec 4.4, RFC 9110 section 7.6.1). */
  readonly hopByHopRequest: boolean
  /** For one connection only (RFC 9110 section 7.6.1). */
  readonly hopByHopResponse: boolean
  /** It marks answers of the gateway: an upstream must not be able to send it. */
  readonly own: boolean
  /** In an answer, the field tells the client where to go next, or what to send. */
  readonly leadsOn: boolean
  /** In a request the gateway itself acts on it. */
  readonly steersGateway: boolean
}

/** Bounds of the cache, since callers choose the names. */
const maxKnown = 1_024
const maxKnownLength = 64
const known = new Map<string, FieldName>()
const near = new Near<FieldName>(512)

/** Fields that `readFields` notes. */
const steering: ReadonlySet<string> = new Set([
  ...['host', 'content-length', 'transfer-encoding', 'connection', 'upgrade', 'via'],
  ...['max-forwards', 'idempotency-key', 'mcp-method', 'mcp-name'],
  ...['mcp-session-id', 'mcp-protocol-version', 'last-event-id'],
])
const leadingOn: ReadonlySet<string> = new Set(['location', 'content-location', 'set-cookie', 'www-authenticate'])

/** @param name as it was received */
export function fieldName(name: string): FieldName {
  return near.get(name) ?? find(name)
}

function find(name: string): FieldName {
  const found = known.get(name) ?? learn(name)
  if (name.length <= maxKnownLength) near.set(name, found)
  return found
}

function learn(name: string): FieldName {
  const lower = name.toLowerCase()
  const learnt = {
    lower,
    isToken: token.test(name),
    folded: foldName(name),
    isDisguised: isDisguised(lower),
    hopByHopRequest: hopByHopRequest.has(lower),
    hopByHopResponse: hopByHopResponse.has(lower),
    own: isOwnField(lower),
    leadsOn: leadingOn.has(lower),
    steersGateway: steering.has(lower),
  }
  if (name.length > maxKnownLength) return learnt
  if (known.size >= maxKnown) known.clear()
  known.set(name, learnt)
  return learnt
}

/** In every answer: the id of the request in the log. */
export const requestIdField = 'Gateway-Request-Id'

const ownNames: ReadonlySet<string> = new Set(['gateway-error', requestIdField.toLowerCase()])
const ownPrefixes = ['gateway-hitl-', 'gateway-upstream-']

/** Whether a field marks answers of the gateway. */
export function isOwnField(lowerName: string): boolean {
  return ownNames.has(lowerName) || ownPrefixes.some(prefix => lowerName.startsWith(prefix))
}
