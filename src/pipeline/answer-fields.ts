import type { Target } from '../base/target.ts'
import { passFields } from '../http/headers.ts'
import { fieldName } from '../http/names.ts'

/** Proxy:Redirects and Proxy:Cookies. */
export interface AnswerSettings {
  readonly Redirects: 'Rewrite' | 'Pass'
  readonly Cookies: 'Scope' | 'Pass'
}

/**
 * The fields of an upstream's answer as the client gets them, flat. A client that follows a redirect sends its headers
 * along, the gateway's token too: so `Location` and `Content-Location` point back at the gateway. Cookies get a path
 * below `/proxy/<origin>`, so that no other upstream receives them.
 */
export function answerFields(received: readonly string[], target: Target, settings: AnswerSettings): string[] {
  const fields: string[] = []
  if (!passFields(received, fields)) return fields
  for (let i = 0; i < fields.length; i += 2) {
    const { lower, leadsOn } = fieldName(fields[i]!)
    if (!leadsOn) continue
    if (lower === 'set-cookie') {
      if (settings.Cookies === 'Scope') fields[i + 1] = scopedCookie(fields[i + 1]!, target)
    } else if (settings.Redirects === 'Rewrite') pointBack(fields, i, target)
  }
  return fields
}

/** The original stays readable. A reference that is not an http URL cannot be followed through the gateway: it is renamed. */
function pointBack(fields: string[], at: number, target: Target): void {
  const name = fields[at]!
  const value = fields[at + 1]!
  const rewritten = throughGateway(value, target)
  if (rewritten === undefined) fields[at] = `Gateway-Upstream-${name}`
  else {
    fields[at + 1] = rewritten
    fields.push(`Gateway-Upstream-${name}`, value)
  }
}

/** A path alone: only the client knows the name by which it reached the gateway. */
function throughGateway(reference: string, target: Target): string | undefined {
  const url = URL.parse(reference.replace(/[\x80-\xff]/g, percentEncoded), target.url)
  if (url === null || (url.protocol !== 'https:' && url.protocol !== 'http:')) return undefined
  return `/proxy/${url.href}`
}

/** Field values are bytes, each as the code point of the same number. */
const percentEncoded = (byte: string): string => `%${byte.charCodeAt(0).toString(16).toUpperCase()}`

/**
 * Removes `Domain`, and moves `Path` below /proxy. Without a path the client takes that of its request (RFC 6265 section
 * 5.1.4), which is below /proxy already.
 */
function scopedCookie(cookie: string, { origin }: Target): string {
  const [pair = '', ...attributes] = cookie.split(';')
  let path: string | undefined
  const kept = attributes.filter(attribute => {
    const [name = '', value = ''] = attribute.split('=', 2)
    const lower = name.trim().toLowerCase()
    if (lower === 'path') path = value.trim()
    return lower !== 'path' && lower !== 'domain'
  })
  // A path that does not begin with a slash counts as absent (RFC 6265 section 5.2.4).
  if (path?.startsWith('/') === true) kept.push(` Path=/proxy/${origin.key}${path === '/' ? '' : path}`)
  return [pair, ...kept].join(';')
}
