/** What a field name is made of (RFC 9110 sections 5.1 and 5.6.2), as part of a pattern. */
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

/** In a request also those that are set anew for the next connection (spec 4.4). */
export const hopByHopRequest: ReadonlySet<string> = new Set([
  ...hopByHopResponse,
  'content-length',
  'expect',
  'host',
  'http2-settings',
])
