/**
 * Admission of a known agent's request, before any policy is asked: its target, its rate, slot and size, and whether its
 * connection may become a tunnel (CONNECT) or a WebSocket (RFC 6455).
 */
import { createHash } from 'node:crypto'
import { type Refusal, refuse } from '../../base/refusals.ts'
import { parseTarget } from '../../base/target.ts'
import { fieldValues } from '../../http/headers.ts'
import { ConnectTunnel } from '../../http/own-urls.ts'
import { takeAsked } from '../../limits/caller-rate.ts'
import { inFlightFields, rateFields, secondsUntilFull } from '../../limits/rate-fields.ts'
import { paceOf } from '../../limits/token-bucket.ts'
import { keyIdOf } from '../../tokens/agent-key.ts'
import { type ResponseHead, UpstreamError } from '../../upstream/handler.ts'
import type { Admitted, Authenticated, Exchange, StepOutcome, StepResult } from '../exchange.ts'
import type { Parts } from '../parts.ts'
import { isStillAdmitted } from '../rights.ts'

/**
 * Counts the request against the limits of its agent, once, even when it starts again; then parses the target. That takes a
 * few milliseconds for some long ones.
 */
export function admit(exchange: Authenticated, parts: Parts): StepResult {
  if (exchange.target !== undefined) return undefined
  // Nothing gives back the slot of a request whose client left while its token was verified.
  if (exchange.isOver) return refuse('invalid_request')
  if (exchange.isCounted) return readTarget(exchange)
  exchange.isCounted = true
  const limited = limit(exchange, parts)
  return limited instanceof Promise ? limited.then(late => goOn(exchange, late)) : goOn(exchange, limited)
}

/** Longest target that a request beyond the limits has in the log, characters: it is parsed for that alone. */
const longestLogged = 1_024

function goOn(exchange: Authenticated, limited: StepOutcome): StepOutcome {
  if (limited === undefined) return readTarget(exchange)
  if (exchange.rawTarget.length <= longestLogged) readTarget(exchange)
  return limited
}

function readTarget(exchange: Authenticated): Refusal | undefined {
  const target = parseTarget(exchange.rawTarget)
  if (typeof target === 'string') return refuse('invalid_target', target)
  exchange.target = target
  return undefined
}

export function checkSize({ fields }: Exchange, { config }: Parts): Refusal | undefined {
  const { MaxRequestBytes } = config.Proxy
  return MaxRequestBytes > 0 && fields.contentLength > MaxRequestBytes ? refuse('body_too_large') : undefined
}

/**
 * Takes one request from the agent's bucket, and one of the agent's slots (MaxInFlight). Every authenticated request
 * counts against the rate, also one that is refused later. Waits only when the fleet must be asked for tokens first.
 */
function limit(exchange: Authenticated, parts: Parts): StepResult {
  const { agent, startedAt, addressing } = exchange
  if (addressing.tunnel?.countsRequest() === false) return takeSlot(exchange, parts)
  const wait = parts.agentRate.take(agent.id, startedAt)
  // Whether a CONNECT takes a place is decided later (`intercept`).
  const slot = addressing.road === 'tunnel' ? undefined : takeSlot
  if (wait === undefined) return slot?.(exchange, parts) ?? untilAsked(exchange, parts)
  if (wait > 0) return refuseRate(exchange, wait, parts)
  if (parts.config.System.RateLimit.Fields !== 'Refused') noteLow(exchange, parts)
  return slot?.(exchange, parts)
}

/** An answer names what the agent may still ask when little is left. */
function noteLow(exchange: Exchange, { agentRate, config }: Parts): void {
  const { RateLimit } = config.System
  const left = agentRate.left()
  if (left === undefined || (RateLimit.Fields === 'Low' && left >= RateLimit.Burst / 10)) return
  const limit = paceOf(RateLimit)
  exchange.rateFields = rateFields(limit, left, secondsUntilFull(limit, left))
}

async function untilAsked(exchange: Authenticated, parts: Parts): Promise<StepOutcome> {
  const { agentRate, clock } = parts
  const asking = { now: () => clock.steady(), isOver: () => exchange.isOver }
  const wait = await takeAsked(agentRate, exchange.agent.id, asking)
  if (exchange.isOver) return undefined
  if (wait > 0) return refuseRate(exchange, wait, parts)
  return isStillAdmitted(exchange, parts) ? undefined : 'again'
}

/** Takes one of the agent's slots (MaxInFlight). */
function takeSlot(exchange: Authenticated, parts: Parts): Refusal | undefined {
  const { agent, requestId } = exchange
  if (!parts.requests.take(agent.id, 1, parts.config.System.RateLimit.MaxInFlight)) {
    parts.bounds.reached('agent_requests', agent.id, requestId)
    return refuse('agent_busy', undefined, { headers: inFlightFields(parts.config.System.RateLimit.MaxInFlight) })
  }
  exchange.slotOf = agent.id
  return undefined
}

/** Gives back the agent's slot at the end of an exchange. */
export function releaseSlot(exchange: Exchange, parts: Parts): void {
  if (exchange.slotOf === undefined) return
  parts.requests.give(exchange.slotOf, 1)
  exchange.slotOf = undefined
}

/** @param wait milliseconds until the next request may pass */
function refuseRate({ agent, requestId }: Authenticated, wait: number, parts: Parts): Refusal {
  parts.bounds.reached('agent_rate', agent.id, requestId)
  const seconds = Math.ceil(wait / 1_000)
  const fields = rateFields(paceOf(parts.config.System.RateLimit), 0, seconds)
  return refuse('rate_limited', undefined, { headers: ['Retry-After', String(seconds), ...fields] })
}

/**
 * Opens a tunnel for a CONNECT. The requests in it pass all steps. A CONNECT to a host that is not opened passes the other steps
 * itself.
 */
export function intercept(exchange: Admitted, parts: Parts): StepResult {
  if (exchange.addressing.road !== 'tunnel') return undefined
  const { agent, claims, token, target, requestId, socket, req, res } = exchange
  const { interception } = parts
  if (interception === undefined) throw new Error('cannot happen: a tunnel without a forward proxy')
  if (!interception.hosts.opens(target.origin)) return takeSlot(exchange, parts)
  const clientIp = parts.clientIpOf(socket, req.rawHeaders)
  const tunnel = new ConnectTunnel({ id: requestId, agentId: agent.id, token, clientIp, origin: target.origin })
  if (!interception.permits(tunnel.host)) return notPermitted
  const close = (): void => (tunnel.connection ?? socket).destroySoon()
  if (!parts.tunnels.open({ agentId: agent.id, keyId: keyIdOf(claims), socket, close })) {
    return refuseTunnel(exchange, parts)
  }
  res.detachSocket(socket)
  noteUnused(exchange, tunnel, parts)
  interception.open(socket, tunnel)
  return 'handed over'
}

/** A tunnel is known by its requests. One that closes without any is noted by itself. */
function noteUnused({ claims, startedAt, socket }: Admitted, tunnel: ConnectTunnel, parts: Parts): void {
  // No more of the exchange than this is kept: an idle tunnel must not take more memory than it needs.
  const keyId = keyIdOf(claims)
  socket.once('close', () => {
    const { id, agentId, clientIp, origin, failure: cause } = tunnel
    if (!tunnel.isUnused) return
    const ms = parts.clock.steady() - startedAt
    for (const listener of parts.ends) listener.unused?.({ id, agentId, keyId, clientIp, origin, cause, ms })
  })
}

const notPermitted = refuse('egress_denied', undefined, { cause: 'the CA may not issue certificates for this host' })

function refuseTunnel({ agent, requestId }: Admitted, { bounds }: Parts): Refusal {
  bounds.reached('tunnels', agent.id, requestId)
  return refuse('too_many_tunnels')
}

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
