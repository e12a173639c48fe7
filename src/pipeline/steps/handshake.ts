/** Handshakes of WebSockets (RFC 6455), for hosts that `Proxy:AllowUpgrade` names. */
import { createHash } from 'node:crypto'
import { type Refusal, refuse } from '../../base/refusals.ts'
import { fieldValues } from '../../http/headers.ts'
import { type ResponseHead, UpstreamError } from '../../upstream/handler.ts'
import type { Admitted } from '../exchange.ts'
import type { Parts } from '../parts.ts'

/** An answer 426 names the protocols to use instead (RFC 9110 section 15.5.22). */
const useHttp = ['Upgrade', 'HTTP/1.1']
const notAllowed = refuse('websocket_not_supported', undefined, { headers: useHttp })
/** Clients with a fallback then send their requests over HTTP, where each request can be held. */
export const notHeld = refuse(
  'websocket_not_supported',
  'The policy wants a person to review this request, and a WebSocket cannot be held: its messages come later, and are not read. Send them over HTTP.',
  { headers: useHttp },
)

/** Refuses handshakes to hosts that are not opened for them, and malformed ones (RFC 6455 section 4.2.1). */
export function checkHandshake(exchange: Admitted, parts: Parts): Refusal | undefined {
  if (!exchange.fields.webSocket) return undefined
  if (!parts.allowsUpgrade(exchange.target.origin.host)) return notAllowed
  const { req, fields } = exchange
  const raw = req.rawHeaders
  const one = (name: string, pattern: RegExp): boolean => {
    const values = fieldValues(raw, name)
    return values.length === 1 && pattern.test(values[0]!)
  }
  const asks = /(?:^|,)[ \t]*upgrade[ \t]*(?:,|$)/i.test(fieldValues(raw, 'connection').join())
  const isWhole =
    exchange.isUpgraded && exchange.method === 'GET' && req.httpVersion === '1.1' && fields.contentLength === 0 && asks
  if (!isWhole || !one('upgrade', /^websocket$/i) || !one('sec-websocket-version', /^13$/) || !one(keyField, key)) {
    return refuse(
      'invalid_request',
      'The WebSocket handshake is malformed: GET, HTTP/1.1, version 13 and a key are needed.',
    )
  }
  return undefined
}

const keyField = 'sec-websocket-key'
/** 16 bytes in Base64. */
const key = /^[A-Za-z0-9+/]{22}==$/
const guid = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'

/** @throws UpstreamError when the answer does not accept this handshake (RFC 6455 section 4.1) */
export function checkAccepted({ fields }: ResponseHead, asked: readonly string[]): void {
  const single = (name: string): string | undefined => {
    const values = fieldValues(fields, name)
    if (values.length > 1) throw new UpstreamError('malformed', `more than one ${name}`)
    return values[0]
  }
  const accept = createHash('sha1')
    .update(`${fieldValues(asked, keyField)[0]}${guid}`)
    .digest('base64')
  const protocol = single('sec-websocket-protocol')
  const offered = fieldValues(asked, 'sec-websocket-protocol').join().split(',')
  const isAccepted =
    single('upgrade')?.toLowerCase() === 'websocket' &&
    /(?:^|,)[ \t]*upgrade[ \t]*(?:,|$)/i.test(fieldValues(fields, 'connection').join()) &&
    single('sec-websocket-accept') === accept &&
    (protocol === undefined || offered.some(each => each.trim() === protocol)) &&
    (fieldValues(asked, 'sec-websocket-extensions').length > 0 || single('sec-websocket-extensions') === undefined)
  if (!isAccepted) throw new UpstreamError('malformed', 'an answer to another handshake')
}
