/**
 * What people and APIs see of a held request: secrets replaced by a mark (spec 2.3).
 */
import { isUtf8 } from 'node:buffer'
import { mark, redactText } from '../base/redact.ts'
import { isSecretName } from '../base/secret-names.ts'

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
    const value = secret ? mark : redactText(rawHeaders[index + 1]!)
    const before = fields.get(name)
    fields.set(name, before === undefined || secret ? value : `${before}, ${value}`)
  }
  // fromEntries defines own properties, so that a field named __proto__ is a field like any other.
  return Object.fromEntries(fields)
}

/** How a body is shown: as text, or as base64 when its bytes are not UTF-8. */
export function bodyEncodingOf(bytes: Uint8Array): 'utf8' | 'base64' {
  return isUtf8(bytes) ? 'utf8' : 'base64'
}
