/** Heads of requests and answers of HTTP/2 as HTTP/1.1 has them, and back (RFC 9113 section 8). */
import { fieldName } from './names.ts'

export interface Http1Request {
  readonly method: string
  readonly target: string
  /** Flat: name, value. */
  readonly fields: string[]
}

/** Methods of requests that usually have no body: without a length they have none. */
const bodiless: ReadonlySet<string> = new Set(['GET', 'HEAD', 'DELETE', 'OPTIONS', 'TRACE', 'CONNECT'])

/**
 * The head of a request. Its checks are those of HTTP/1.1, so fields that contradict each other are kept: two hosts are
 * two `Host` fields, and another scheme makes an absolute URL.
 *
 * @param raw as received, flat; pseudo-header fields are there as the protocol demands
 * @param isWhole no body follows
 */
export function http1Head(raw: readonly string[], isWhole: boolean): Http1Request {
  const pseudo: Partial<Record<string, string>> = {}
  const fields: string[] = []
  const cookies: string[] = []
  const hosts = new Set<string>()
  let hasLength = false
  for (let i = 0; i < raw.length; i += 2) {
    const [name, value] = [raw[i]!, raw[i + 1]!]
    if (name.startsWith(':')) pseudo[name] = value
    else if (name === 'host') hosts.add(value)
    // One field in HTTP/1.1 (RFC 9113 section 8.2.3).
    else if (name === 'cookie') cookies.push(value)
    else fields.push(name, value)
    if (name === 'content-length') hasLength = true
  }
  const { ':method': method = '', ':path': path = '', ':scheme': scheme, ':authority': authority } = pseudo
  if (authority !== undefined) hosts.add(authority)
  for (const host of hosts) fields.push('host', host)
  if (cookies.length > 0) fields.push('cookie', cookies.join('; '))
  const isConnect = method === 'CONNECT'
  if (!isWhole && !hasLength && !isConnect) fields.push('transfer-encoding', 'chunked')
  else if (!hasLength && !bodiless.has(method)) fields.push('content-length', '0')
  fields.push('connection', 'close')
  const [host = ''] = hosts
  return { method, target: targetOf({ method, scheme, host, path }), fields }
}

interface TargetParts {
  readonly method: string
  readonly scheme: string | undefined
  readonly host: string
  readonly path: string
}

function targetOf({ method, scheme, host, path }: TargetParts): string {
  if (method === 'CONNECT') return host
  return scheme === 'https' || path === '*' ? path : `${scheme}://${host}${path}`
}

/**
 * The fields of an answer without those of a connection (RFC 9113 section 8.2.2). Those of one name become one, since Node
 * refuses some that are there twice; cookies cannot be joined.
 *
 * @param raw flat: name, value
 */
export function http2Fields(raw: readonly string[]): Record<string, string | string[]> {
  const fields: Record<string, string | string[]> = Object.create(null)
  const cookies: string[] = []
  for (let i = 0; i < raw.length; i += 2) {
    const { lower, hopByHopResponse } = fieldName(raw[i]!)
    const value = raw[i + 1]!
    if (hopByHopResponse) continue
    if (lower === 'set-cookie') cookies.push(value)
    else fields[lower] = fields[lower] === undefined ? value : `${fields[lower]}, ${value}`
  }
  if (cookies.length > 0) fields['set-cookie'] = cookies
  return fields
}
