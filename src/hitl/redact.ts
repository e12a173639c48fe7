/**
 * What people and APIs see of a held request: secrets replaced by a mark (spec 2.3), characters that deceive the
 * eye written out.
 */
import { isUtf8 } from 'node:buffer'

const mark = '[REDACTED]'

/** Names as `normalise` writes them. */
const secretNames = new Set([
  'authorization',
  'cookie',
  'set-cookie',
  'token',
  'secret',
  'key',
  'password',
  'passwd',
  'passphrase',
  'pwd',
  'auth',
  'jwt',
  'sig',
  'signature',
  'session',
  'sid',
  'credential',
  'credentials',
  'apikey',
  'accesstoken',
  'clientsecret',
  'awsaccess-key-id',
  'awsaccesskeyid',
])
const secretSuffixes = [
  '-token',
  '-secret',
  '-key',
  '-password',
  '-authorization',
  '-cookie',
  '-signature',
  '-credential',
  '-credentials',
  '-apikey',
]
const schemePattern = /^(?:bearer|basic|digest|negotiate|token|apikey)\s+\S/i
/** Controls, formatting marks (bidi, zero width), line and paragraph separators, lone surrogates. */
const deceptive = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu

/** Lower case, words joined by hyphens: `X_Api_Key`, `xApiKey` and `x.api.key` are one name. */
function normalise(name: string): string {
  return name
    .replace(/([a-z0-9])([A-Z])/g, '$1-$2')
    .replace(/[_.\s[\]]+/g, '-')
    .replace(/^-+|-+$/g, '')
    .toLowerCase()
}

/** Whether a header field or query parameter of this name carries a credential. */
export function isSecretName(name: string): boolean {
  const normal = normalise(name)
  return secretNames.has(normal) || normal.startsWith('x-goog-') || secretSuffixes.some(end => normal.endsWith(end))
}

/**
 * Header fields for display. Lines of one name are joined by a comma (RFC 9110 section 5.3).
 *
 * @param rawHeaders name, value, name, value
 * @param tokenHeader the field that carries agent tokens, whatever it is called
 */
export function redactHeaders(rawHeaders: readonly string[], tokenHeader: string): Record<string, string> {
  const fields = new Map<string, string>()
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    const name = rawHeaders[index]!.toLowerCase()
    const secret = isSecretName(rawHeaders[index]!) || name === tokenHeader.toLowerCase()
    const value = secret ? mark : redactValue(rawHeaders[index + 1]!)
    const before = fields.get(name)
    fields.set(name, before === undefined || secret ? value : `${before}, ${value}`)
  }
  // fromEntries defines own properties, so that a field named __proto__ is a field like any other.
  return Object.fromEntries(fields)
}

/** A credential under an innocent name, or a URL with one inside (Referer). */
function redactValue(value: string): string {
  if (schemePattern.test(value)) return mark
  return /^https?:\/\//i.test(value) ? redactUrl(value) : value
}

/** The URL with credentials in userinfo and query replaced; everything else byte for byte. */
export function redactUrl(url: string): string {
  const bare = url.replace(/^([a-z][a-z0-9+.-]*:\/\/)[^/?#]*@/i, `$1${mark}@`)
  const start = bare.indexOf('?')
  if (start < 0) return bare
  const hash = bare.indexOf('#', start)
  const end = hash < 0 ? bare.length : hash
  const query = bare.slice(start + 1, end).replace(/[^&;]+/g, redactParameter)
  return bare.slice(0, start + 1) + query + bare.slice(end)
}

function redactParameter(parameter: string): string {
  const equals = parameter.indexOf('=')
  if (equals < 0) return parameter
  return isSecretName(decode(parameter.slice(0, equals))) ? `${parameter.slice(0, equals + 1)}${mark}` : parameter
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** How a body is shown: as text, or as base64 when its bytes are not UTF-8. */
export function bodyEncodingOf(bytes: Uint8Array): 'utf8' | 'base64' {
  return isUtf8(bytes) ? 'utf8' : 'base64'
}

/** Text for the eyes of a reviewer: what could hide or reorder it is written as `\u{202e}`. */
export function escapeDeceptive(text: string): string {
  return text.replace(deceptive, char => `\\u{${char.codePointAt(0)!.toString(16)}}`)
}

/** The same for a text that may have several lines. */
export function escapeLines(text: string | null): string | null {
  return text?.split('\n').map(escapeDeceptive).join('\n') ?? null
}

/** The same for every text inside a JSON value. */
export function escapeDeceptiveIn<T>(value: T): T {
  return escapedIn(value) as T
}

function escapedIn(value: unknown): unknown {
  if (typeof value === 'string') return escapeDeceptive(value)
  if (Array.isArray(value)) return value.map(escapedIn)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, escapedIn(inner)]))
}
