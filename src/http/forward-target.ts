/** Targets of requests to the forward proxy. */
import type { Duplex } from 'node:stream'
import { type Refusal, refuse } from '../base/refusals.ts'
import { OwnUrls, tunnelOf } from './own-urls.ts'
import { type RequestRoute, remembering } from './request-line.ts'

const forward = new OwnUrls('forward')
const connect = new OwnUrls('tunnel')

/** Clients of a forward proxy send a URL with its scheme (RFC 9112 section 3.2.2). */
const absoluteForm = /^https?:\/\//i

/**
 * The target of a request to the forward proxy. The authority of the URL counts, not the Host field (RFC 9112 section
 * 3.2.2).
 */
export const readForwardTarget = remembering((url): RequestRoute | Refusal =>
  absoluteForm.test(url) ? { kind: 'proxy', rawTarget: url, addressing: forward } : notAbsolute,
)

const notAbsolute = refuse(
  'invalid_target',
  'This is the port of the forward proxy: the request target must be an http or https URL, such as http://example.com/path. Set this address as HTTP_PROXY.',
)

/** Host and port (RFC 9110 section 9.3.6). The host is checked like that of every target (base/target.ts). */
const authorityForm = /^(?:\[[0-9a-f:.]*\]|[^\s:/?#@[\]\\]+):\d+$/i

export function readConnectTarget(authority: string): RequestRoute | Refusal {
  if (!authorityForm.test(authority)) return notAuthority
  return { kind: 'proxy', rawTarget: `https://${authority}`, addressing: connect }
}

const notAuthority = refuse(
  'invalid_target',
  'The target of CONNECT must be a host and a port, such as example.com:443.',
)

export const refuseInnerTunnel = (): Refusal => innerTunnel

const innerTunnel = refuse('method_not_allowed', 'The gateway opens no tunnels inside of tunnels.')

/** The target of a request in a tunnel: a path of the origin that CONNECT named, or a URL in it. */
export function readTunnelTarget(url: string, host: string, connection: Duplex): RequestRoute | Refusal {
  const tunnel = tunnelOf(connection)
  const [, scheme, authority = '', rest] = /^(https?):\/\/([^/?#]*)(.*)$/i.exec(url) ?? []
  const names = authority !== '' && tunnel.isNamed(authority)
  const isOther = scheme !== undefined && (scheme.toLowerCase() !== tunnel.scheme || !names)
  if (isOther || !tunnel.isNamed(host)) return misdirected
  const path = scheme === undefined ? url : `${rest?.startsWith('/') ? '' : '/'}${rest}`
  if (!path.startsWith('/')) return notPath
  return { kind: 'proxy', rawTarget: tunnel.origin + path, addressing: tunnel }
}

const misdirected = refuse('misdirected', undefined, { headers: ['Connection', 'close'] })
const notPath = refuse(
  'invalid_target',
  'In a tunnel the request target must be a path, or a URL of the host of CONNECT.',
)
