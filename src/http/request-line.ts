import { type Refusal, refuse } from '../errors.ts'

const proxyPrefix = '/proxy/'

/** Where a request line points: at an upstream, as raw text, or at a path of the gateway itself. */
export type Route =
  | { readonly kind: 'proxy'; readonly rawTarget: string }
  | { readonly kind: 'own'; readonly path: string }

/**
 * Reads the request-target (RFC 9112 section 3.2). Absolute-form is taken when it names this host, as the RFC asks,
 * and never forwarded: an upstream is only ever named behind `/proxy/`.
 */
export function readRequestTarget(url: string, host: string): Route | Refusal {
  const path = url.charCodeAt(0) === 0x2f ? url : pathOfAbsoluteForm(url, host)
  if (path === undefined) {
    return refuse('invalid_request', 'The request target must be a path. Upstreams are called as /proxy/<URL>.')
  }
  if (path.startsWith(proxyPrefix)) return { kind: 'proxy', rawTarget: path.slice(proxyPrefix.length) }
  return { kind: 'own', path }
}

function pathOfAbsoluteForm(url: string, host: string): string | undefined {
  const match = /^https?:\/\/([^/?#]*)(\/.*)?$/i.exec(url)
  if (match === null || host === '' || match[1]?.toLowerCase() !== host.toLowerCase()) return undefined
  return match[2] ?? '/'
}
