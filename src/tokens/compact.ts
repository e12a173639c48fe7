import { parseStrictJson } from '../base/json.ts'
import { isObject } from '../base/records.ts'

/** Longest token looked at, in characters. */
const maxLength = 8_192

/** A token taken apart, and not yet verified. */
export interface Compact {
  readonly header: Readonly<Record<string, unknown>>
  readonly payload: Readonly<Record<string, unknown>>
}

const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
/** Value of each character code in base64url; -1 for those outside of it. */
const values = Int8Array.from({ length: 128 }, (_, code) => alphabet.indexOf(String.fromCharCode(code)))

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

/** Not empty, only the alphabet, and no bits set that decoding would drop. */
function isBase64url(text: string): boolean {
  const rest = text.length % 4
  if (text.length === 0 || rest === 1) return false
  let last = 0
  for (let i = 0; i < text.length; i++) {
    last = values[text.charCodeAt(i)] ?? -1
    if (last < 0) return false
  }
  const dropped = rest === 2 ? 0b1111 : rest === 3 ? 0b11 : 0
  return (last & dropped) === 0
}

function parseObject(part: string): Readonly<Record<string, unknown>> | undefined {
  const parsed = parseStrictJson(Buffer.from(part, 'base64url'))
  const value = 'value' in parsed ? parsed.value : undefined
  return isObject(value) ? value : undefined
}
