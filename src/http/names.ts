import { hopByHopRequest, hopByHopResponse, token } from '../base/field-names.ts'

/**
 * Names of header fields, worked out once. Nearly every request and answer has the same few dozen names, and telling
 * them apart needs them in lower case.
 */
export interface FieldName {
  readonly lower: string
  /** It is one at all (RFC 9110 section 5.1). */
  readonly isToken: boolean
  /** For one connection only, or set anew for the next one (spec 4.4, RFC 9110 section 7.6.1). */
  readonly hopByHopRequest: boolean
  /** For one connection only (RFC 9110 section 7.6.1). */
  readonly hopByHopResponse: boolean
  /** By these the gateway's own answers are known: an upstream must not be able to write them. */
  readonly own: boolean
}

/** Callers choose names: what is kept of them is bounded. */
const maxKnown = 1_024
const maxKnownLength = 64
const known = new Map<string, FieldName>()

/** @param name as it was received */
export function fieldName(name: string): FieldName {
  return known.get(name) ?? learn(name)
}

function learn(name: string): FieldName {
  const lower = name.toLowerCase()
  const learnt = {
    lower,
    isToken: token.test(name),
    hopByHopRequest: hopByHopRequest.has(lower),
    hopByHopResponse: hopByHopResponse.has(lower),
    own: isOwnField(lower),
  }
  if (name.length > maxKnownLength) return learnt
  if (known.size >= maxKnown) known.clear()
  known.set(name, learnt)
  return learnt
}

/** Fields by which the gateway's own answers are known: an upstream must not be able to write them. */
export function isOwnField(lowerName: string): boolean {
  return lowerName === 'gateway-error' || lowerName.startsWith('gateway-hitl-')
}
