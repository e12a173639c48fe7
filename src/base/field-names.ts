/** Pattern of a field name (RFC 9110 sections 5.1 and 5.6.2). */
export const tokenPattern = "[!#$%&'*+\\-.^_`|~0-9A-Za-z]+"
export const token = new RegExp(`^${tokenPattern}$`)

/** Header fields, in lower case, that are for one connection only (RFC 9110 section 7.6.1). */
export const hopByHopResponse: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])

/**
 * In a request also those that are set again for the next connection (spec 4.4), and the credentials for this gateway as a
 * proxy (RFC 9110 section 11.7.2).
 */
export const hopByHopRequest: ReadonlySet<string> = new Set([
  ...hopByHopResponse,
  'content-length',
  'expect',
  'host',
  'http2-settings',
  'proxy-authorization',
])

/** Fields that frame a message or choose where it goes: no other spelling of them may pass. */
const framing: ReadonlySet<string> = new Set([...hopByHopRequest, 'content-encoding', 'via', 'max-forwards'])

/**
 * A name as lenient servers read it: CGI and WSGI turn every other character into `_` and know no letter case.
 * Lower case, one hyphen for each run of such characters, none at the ends.
 */
export function foldName(name: string): string {
  return name
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-|-$/g, '')
}

/** Whether a lenient server may take this name for a field that frames the message or belongs to the gateway. */
export function isDisguised(lowerName: string): boolean {
  const folded = foldName(lowerName)
  return folded !== lowerName && (framing.has(folded) || folded.startsWith('gateway-'))
}
