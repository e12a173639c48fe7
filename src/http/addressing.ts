/** How a client names the upstream of a request. Links in answers are written in the same form. */
import type { Origin } from '../base/origin.ts'
import { isSecretName } from '../base/secret-names.ts'
import type { Target } from '../base/target.ts'
import type { RequestFields } from './headers.ts'

/** A request as far as it decides where its answer may send the client. */
export interface Linked {
  readonly target: Target
  readonly fields: Pick<RequestFields, 'host' | 'names'>
  readonly tokenNames: readonly string[]
}

/**
 * How a client of the forward proxy sends a request. `forward`: with the whole URL in its request line. `tunnel`: CONNECT.
 * `intercepted`: in a tunnel in which the gateway reads the requests.
 */
export type Road = 'forward' | 'tunnel' | 'intercepted'

export interface TunnelledBy {
  readonly id: string
  /** The token that its CONNECT presented. */
  readonly token: string
  /** Whether a request counts against the rate of the agent: the CONNECT has counted for the first one. */
  countsRequest(): boolean
}

export interface Addressing {
  /** Undefined when the client calls the gateway as a server. */
  readonly road: Road | undefined
  /** The tunnel that the request came through; undefined for others. */
  readonly tunnel: TunnelledBy | undefined
  /** Answers are in the origin of the gateway itself, which has the console. */
  readonly sharesOrigin: boolean
  /** The upstream that the called host stands for; undefined when the URL names it. */
  readonly standsFor: Origin | undefined
  /** The request follows a link that must not carry credentials of another upstream. */
  readonly dropsCredentials: boolean
  /** The link with which the client reaches a URL; undefined when it cannot. */
  linkTo(url: URL, from: Linked): string | undefined
  /** The URL of a virtual host on which the client knows a URL; undefined without one. */
  hostLinkTo(url: URL, from: Linked): string | undefined
  /** The path that a cookie of this upstream gets; undefined: the given one, which is empty without one. */
  cookiePath(given: string, target: Target): string | undefined
  /** The link with which the client reaches a path of the gateway itself; undefined when it cannot. */
  ownLink(path: string): string | undefined
}

export const proxyPrefix = '/proxy/'

/** Marks links to another upstream than the one to which the client sent its credentials; it precedes the URL. */
export const bareMark = 'without-credentials/'

/** `/proxy/https://host`, or `/proxy/https/host` for clients that damage `://` in a path. */
class UnderProxy implements Addressing {
  readonly road = undefined
  readonly tunnel = undefined
  readonly sharesOrigin = true
  readonly standsFor = undefined
  readonly dropsCredentials: boolean
  readonly #separator: '://' | '/'

  constructor(separator: '://' | '/', dropsCredentials: boolean) {
    this.#separator = separator
    this.dropsCredentials = dropsCredentials
  }

  /**
   * A path alone: only the client knows the name by which it reached the gateway. A client that follows a link to another
   * server drops the credentials of the first one. Here all servers have one origin, so the link tells the gateway to drop
   * the credentials.
   */
  linkTo(url: URL, from: Linked): string {
    const isBare = this.dropsCredentials || (url.origin !== from.target.origin.key && sendsCredentials(from))
    return `${proxyPrefix}${isBare ? bareMark : ''}${this.#write(url.href)}`
  }

  hostLinkTo(): undefined {
    return undefined
  }

  /** A path that does not begin with a slash counts as absent (RFC 6265 section 5.2.4). */
  cookiePath(given: string, { path: requested, origin }: Target): string {
    const path = given.startsWith('/') ? given : folderOf(requested)
    return `${proxyPrefix}${this.#write(origin.key)}${path === '/' ? '' : path}`
  }

  ownLink(path: string): string {
    return path
  }

  #write(url: string): string {
    return this.#separator === '://' ? url : url.replace('://', this.#separator)
  }
}

interface Forms {
  readonly plain: Addressing
  readonly bare: Addressing
}

export const byUrl: Forms = { plain: new UnderProxy('://', false), bare: new UnderProxy('://', true) }
export const byPath: Forms = { plain: new UnderProxy('/', false), bare: new UnderProxy('/', true) }

/** Whether the request has credentials for the upstream. Cookies do not count: their path is below one upstream. */
function sendsCredentials({ fields, tokenNames }: Linked): boolean {
  return fields.names.some(({ lower, folded }) => {
    return lower !== 'cookie' && !tokenNames.includes(folded) && isSecretName(lower)
  })
}

/** The folder of the request, or the nearest one above it that an attribute can hold: a semicolon would end the attribute. */
function folderOf(requested: string): string {
  const semicolon = requested.indexOf(';')
  return requested.slice(0, Math.max(1, requested.lastIndexOf('/', semicolon < 0 ? Infinity : semicolon)))
}
