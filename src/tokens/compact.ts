import { parseStrictJson } from '../base/json.ts'
import { isObject } from '../base/records.ts'

/** Longest token looked at, in characters. */
const maxLength = 8_192

/** A token taken apart, and not yet verified. */
export interface Compact {
  readonly header: Readonly<Record<string, unknown>>
  readonly payload: Readonly<Record<string, unknown>>
}

/**
 * Takes a JWS compact serialization apart (RFC 7515 section 7.1), stricter than a verifier needs to be: canonical
 * base64url without padding, valid UTF-8, JSON objects, no member named twice. One token has one spelling and
 * one meaning. Undefined for anything else.
 */
export function parseCompact(token: string): Compact | undefined {
  if (token.length > maxLength) return undefined
  const first = token.indexOf('.')
  const second = token.indexOf('.', first + 1)
  if (first < 0 || second < 0) return undefined
  const parts = [token.slice(0, first), token.slice(first + 1, second), token.slice(second + 1)]
  if (!parts.every(isBase64url)) return undefined
  const header = parseObject(parts[0]!)
  const payload = header && parseObject(parts[1]!)
  return header && payload && { header, payload }
}

/** Not empty, only the alphabet, and no bits set that decoding would drop: it is what its bytes are written as. */
const isBase64url = (text: string): boolean =>
  text !== '' && Buffer.from(text, 'base64url').toString('base64url') === text

function parseObject(part: string): Readonly<Record<string, unknown>> | undefined {
  const parsed = parseStrictJson(Buffer.from(part, 'base64url'))
  const value = 'value' in parsed ? parsed.value : undefined
  return isObject(value) ? value : undefined
}
