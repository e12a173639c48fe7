/**
 * Secrets inside text that is shown, logged or stored for people: parameters by their names wherever they stand in the
 * text (query, fragment, path, cookie, JSON), credentials in URLs, and what looks like a token.
 */
import { percentDecoded } from './percent.ts'
import { isSecretName } from './secret-names.ts'

export const mark = '[REDACTED]'

/** A whole value that is a credential: a scheme and its parameter (RFC 9110 section 11.4), prose left alone. */
const schemePattern =
  /^(?:(?:bearer|dpop|negotiate|ntlm|hawk|hoba|gnap|vapid|scram-sha-\d+|aws4-[\w-]{1,40}|goog4-[\w-]{1,40}|sharedkey(?:lite)?|api-?key)\s+\S|(?:basic|token)\s+\S+\s*$|(?:digest|mutual)\s+\w+=)/i
/** The same in the middle of a text, for the schemes that are no English words. */
const innerScheme = /\b(bearer|dpop)( |%20|\+)[\w.~+/=-]{8,}/gi
/** A JWT in compact form, or its beginning. */
const compactToken = /\beyJ[\w-]{8,}(?:\.[\w-]*){0,4}/g
/** A key of an agent of this gateway, or its beginning. */
const agentKey = /\bagw_[\w-]{8,}/g
const userinfo = /:\/\/[^/?#\s"'<>]*@/g
/** `"name": "value"` in JSON that is text inside of something else. */
const member = /("([^"\\]{1,64})"\s{0,8}:\s{0,8})(?:"(?:[^"\\]|\\.)*"?|[\w.+-]+)/g
/** Between parameters, cookies and words. */
const separators = /([&;?#,\s"'<>(){}|]+)/
/** The same in percent-encoded form, at any depth of encoding: a URL in a parameter of another. */
const encodedSeparators = /(%(?:25)*(?:26|3B|3F|23|2C|20|22|0A))/i
const encodedEquals = /%(?:25)*3D/i

/** The text with its secrets replaced; everything else character for character. Linear in its length. */
export function redactText(text: string): string {
  if (schemePattern.test(text)) return mark
  const bare = text
    .replace(userinfo, `://${mark}@`)
    .replace(compactToken, mark)
    .replace(agentKey, mark)
    .replace(innerScheme, `$1$2${mark}`)
    .replace(member, redactMember)
  if (!bare.includes('=') && !encodedEquals.test(bare)) return bare
  return bare.split(separators).map(redactPair).join('')
}

/** A path with its secrets replaced: paths may have parameters, as `;jsessionid=...`. */
export function redactPath(path: string): string {
  return path.includes('=') || path.includes('%3') ? redactText(path) : path
}

function redactMember(whole: string, start: string, name: string): string {
  return isSecretName(name) ? `${start}"${mark}"` : whole
}

/** `name=value`; a value that is not secret as a whole may be an encoded URL with parameters of its own. */
function redactPair(piece: string): string {
  const equals = piece.indexOf('=')
  if (equals < 0) return redactEncoded(piece)
  const value = piece.slice(equals + 1)
  if (value === '' || value === mark) return piece
  const start = piece.slice(0, equals + 1)
  return start + (isSecretName(nameIn(start)) ? mark : redactEncoded(value))
}

function redactEncoded(text: string): string {
  if (!encodedEquals.test(text)) return text
  return text.split(encodedSeparators).map(redactEncodedPair).join('')
}

function redactEncodedPair(piece: string): string {
  const found = encodedEquals.exec(piece)
  if (found === null) return piece
  const end = found.index + found[0].length
  return end < piece.length && isSecretName(nameIn(piece.slice(0, end))) ? piece.slice(0, end) + mark : piece
}

/** The name before an equals sign: behind the last separator, and of `filter[token]` or `user.token` the last word. */
export function nameIn(start: string): string {
  return /[^/&;?#:@,\s]*$/.exec(decode(start.slice(-longestName)).replace(/=$/, ''))?.[0] ?? ''
}

/** Longest name that is looked at, characters as they are encoded. */
const longestName = 512

/** Decoded as often as it was encoded, at most three times. */
function decode(text: string): string {
  let decoded = text
  for (let depth = 0; depth < 3 && decoded.includes('%'); depth++) decoded = percentDecoded(decoded) ?? decoded
  return decoded
}
