/**
 * Authentication of a connection instead of a request (RFC 4559 section 3): the agent that sends the next request on it acts
 * with the rights of the one before. Such a connection carries one request.
 */

/** Schemes that authenticate the connection. */
const schemes = 'ntlm|negotiate|nego2|nego|nego-?extender|kerberos|credssp|pku2u'
/** A field of an answer may name several schemes, at any place. A match inside of a quoted string does no harm. */
const offered = new RegExp(`(?:^|[\\s,])(?:${schemes})(?=$|[\\s,])`, 'i')
/** Credentials begin with their scheme: a token behind it is not searched. */
const used = new RegExp(`^[\\s,]*(?:${schemes})(?=$|[\\s,])`, 'i')

const authorization = 'authorization'
const proxyAuthorization = 'proxy-authorization'

/** Whether the fields of a request, flat, authenticate the connection that they are sent on. */
export function usesConnectionAuth(fields: readonly string[]): boolean {
  for (let i = 0; i < fields.length; i += 2) {
    const { length } = fields[i]!
    // Most names have another length: comparing that first costs next to nothing.
    if (length !== authorization.length && length !== proxyAuthorization.length) continue
    const name = fields[i]!.toLowerCase()
    if ((name === authorization || name === proxyAuthorization) && used.test(fields[i + 1]!)) return true
  }
  return false
}

/** Whether a field of an answer says that the connection is, or may become, authenticated. */
export function offersConnectionAuth(lowerName: string, value: string): boolean {
  switch (lowerName) {
    case 'www-authenticate':
    case 'proxy-authenticate':
      return offered.test(value)
    case 'persistent-auth':
      return value.trim().toLowerCase() !== 'false'
    case 'proxy-support':
      return value.toLowerCase().includes('session-based-authentication')
    default:
      return false
  }
}
