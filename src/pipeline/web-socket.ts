/**
 * WebSocket (RFC 6455) for hosts that `Proxy:AllowUpgrade` names. The handshake is decided like any request. After it the
 * gateway passes bytes both ways, and reads none of them.
 */
import { createHash } from 'node:crypto'
import type { Socket } from 'node:net'
import { type Refusal, refuse } from '../errors.ts'
import { fieldValues } from '../http/headers.ts'
import { requestIdField } from '../http/names.ts'
import { webSockets } from '../telemetry/layout.ts'
import { failureKind, noteFailure } from '../upstream/failure.ts'
import {
  type Control,
  type ResponseHead,
  UpstreamError,
  type UpstreamHandler,
  type UpstreamRequest,
} from '../upstream/handler.ts'
import { answerFields } from './answer-fields.ts'
import { closeCircuit } from './circuit.ts'
import type { Admitted, Exchange, Sendable, Sender } from './exchange.ts'
import { stillAllows } from './outbound/live.ts'
import type { Parts } from './parts.ts'
import { isStillAdmitted } from './rights.ts'

/** An answer 426 names the protocols to use instead (RFC 9110 section 15.5.22). */
const useHttp = ['Upgrade', 'HTTP/1.1']
const notAllowed = refuse('websocket_not_supported', undefined, { headers: useHttp })
/** Clients that can do without a WebSocket then send their requests over HTTP, where each request can be held. */
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
function checkAccepted({ fields }: ResponseHead, asked: readonly string[]): void {
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

/** Handles the answer when the handshake was not accepted, as for any request. */
type Plain = UpstreamHandler & Sender

/** Sends a handshake, and passes bytes once it is accepted. */
export class WebSocketSender implements UpstreamHandler, Sender {
  readonly #exchange: Sendable
  readonly #parts: Parts
  readonly #plain: Plain
  #control: Control | undefined
  #head: ResponseHead | undefined
  #tunnel: Tunnel | undefined

  /** @param plain handles everything but an accepted handshake */
  constructor(exchange: Sendable, plain: Plain, parts: Parts) {
    this.#exchange = exchange
    this.#parts = parts
    this.#plain = plain
    exchange.sender = this
  }

  send(request: UpstreamRequest): void {
    const { target, resolution } = this.#exchange
    this.#parts.connections.sendAlone(target.origin, resolution, { ...request, upgrades: true }, this)
  }

  onRequestStart(control: Control): void {
    this.#control = control
    this.#plain.onRequestStart?.(control)
  }

  onInterim(head: ResponseHead): void {
    this.#plain.onInterim?.(head)
  }

  onResponseStart(head: ResponseHead): void {
    if (head.status !== 101) this.#plain.onResponseStart(head)
    else {
      checkAccepted(head, this.#exchange.req.rawHeaders)
      closeCircuit(this.#exchange, 'success', this.#parts)
      this.#exchange.upstreamStatus = head.status
    }
    this.#head = head
  }

  onTunnel(upstream: Socket): void {
    const control = this.#control
    if (control === undefined || this.#head === undefined) throw new Error('cannot happen: a tunnel without a head')
    this.#tunnel = new Tunnel(this.#exchange, { upstream, control }, this.#parts)
    this.#tunnel.open(this.#head)
  }

  onResponseData(chunk: Buffer): void {
    if (this.#tunnel === undefined) this.#plain.onResponseData(chunk)
    else this.#tunnel.passDown(chunk)
  }

  onResponseEnd(trailers: readonly string[]): void {
    if (this.#tunnel === undefined) this.#plain.onResponseEnd(trailers)
    else this.#tunnel.finish()
  }

  onResponseError(error: Error): void {
    if (this.#tunnel === undefined) this.#plain.onResponseError(error)
    else this.#tunnel.break(error)
  }

  clientClosed(): void {
    if (this.#tunnel === undefined) this.#plain.clientClosed()
    else this.#tunnel.finish()
  }

  end(refusal: Refusal): void {
    if (this.#tunnel === undefined) this.#plain.end(refusal)
    else this.#tunnel.cut(refusal)
  }
}

interface Ends {
  readonly upstream: Socket
  /** Of the exchange with the upstream. */
  readonly control: Control
}

/** Interval of the checks of rights and limits, milliseconds. */
const lookMs = 1_000
/** The handshake is decided anew with each so many checks: a decision costs more than they do. */
const looksPerDecision = 5
/** Longest time for the last bytes, milliseconds. */
const lingerMs = 10_000

/** An open WebSocket: bytes both ways, within limits. */
class Tunnel {
  readonly #exchange: Sendable
  readonly #client: Socket
  readonly #upstream: Socket
  readonly #control: Control
  readonly #parts: Parts
  readonly #since: number
  /** When the last byte moved, steady milliseconds. */
  #movedAt: number
  #timer: NodeJS.Timeout | undefined
  #looks = 0
  #isOver = false

  constructor(exchange: Sendable, { upstream, control }: Ends, parts: Parts) {
    this.#exchange = exchange
    this.#client = exchange.socket
    this.#upstream = upstream
    this.#control = control
    this.#parts = parts
    this.#since = parts.clock.steady()
    this.#movedAt = this.#since
  }

  open({ fields: received }: ResponseHead): void {
    if (!this.#mayPass()) return
    const { requestId } = this.#exchange
    const own = ['Upgrade', 'websocket', 'Connection', 'Upgrade', requestIdField, requestId]
    const fields = [...answerFields(received, this.#exchange, this.#parts.links), ...own]
    let head = 'HTTP/1.1 101 Switching Protocols\r\n'
    for (let i = 0; i < fields.length; i += 2) head += `${fields[i]}: ${fields[i + 1]}\r\n`
    this.#client.write(`${head}\r\n`, 'latin1')
    this.#client.on('data', (chunk: Buffer) => this.#passUp(chunk)).on('end', () => this.#upstream.end())
    if (this.#client.readableEnded) this.#upstream.end()
    this.#timer = setInterval(() => this.#look(), lookMs)
    this.#parts.metrics?.add(webSockets, 1)
    this.#parts.recorder.opened(this.#exchange)
  }

  #passUp(chunk: Buffer): void {
    if (!this.#mayPass()) return
    this.#exchange.bytesUp += chunk.length
    this.#movedAt = this.#parts.clock.steady()
    if (this.#upstream.write(chunk)) return
    this.#client.pause()
    this.#upstream.once('drain', () => this.#client.resume())
  }

  /** `chunk` is valid during this call alone. */
  passDown(chunk: Buffer): void {
    if (!this.#mayPass()) return
    this.#exchange.bytesDown += chunk.length
    this.#movedAt = this.#parts.clock.steady()
    if (this.#client.write(Buffer.from(chunk))) return
    this.#control.pause()
    this.#client.once('drain', () => this.#control.resume())
  }

  #mayPass(): boolean {
    const fenced = this.#isOver ? undefined : this.#parts.fencedAs()
    if (fenced !== undefined) this.cut(refuse(fenced))
    return !this.#isOver
  }

  /** Ends the WebSocket when its agent loses its rights, the rules in force do not allow it, or a limit is reached. */
  #look(): void {
    const { UpgradeMaxBytes, UpgradeMaxSeconds, UpgradeIdleSeconds } = this.#parts.config.Proxy
    const { bytesUp, bytesDown } = this.#exchange
    const now = this.#parts.clock.steady()
    const isDue = ++this.#looks % looksPerDecision === 0
    if (!isStillAdmitted(this.#exchange, this.#parts)) this.cut(refuse('unauthenticated'))
    else if (!stillAllows(this.#exchange, this.#parts, isDue)) this.cut(refuse('policy_denied'))
    else if (now - this.#since > UpgradeMaxSeconds * 1_000) this.#limit('upgrade_time')
    else if (now - this.#movedAt > UpgradeIdleSeconds * 1_000) this.#limit('upgrade_idle')
    else if (UpgradeMaxBytes > 0 && bytesUp + bytesDown > UpgradeMaxBytes) this.#limit('upgrade_bytes')
  }

  #limit(bound: 'upgrade_time' | 'upgrade_idle' | 'upgrade_bytes'): void {
    const { agent, requestId } = this.#exchange
    this.#parts.bounds.reached(bound, agent.id, requestId)
    this.cut(refuse('busy', 'The WebSocket has reached a limit of the gateway.'))
  }

  /** One side has closed the WebSocket. Bytes that were written before are still sent. */
  finish(): void {
    if (!this.#end('forwarded')) return
    const close = (): void => {
      clearTimeout(late)
      this.#client.destroy()
      this.#control.abort(new Error('the WebSocket was closed'))
    }
    const late = setTimeout(close, lingerMs).unref()
    let left = 2
    const sent = (): void => {
      left -= 1
      if (left === 0) close()
    }
    this.#client.end(sent)
    this.#upstream.end(sent)
  }

  break(error: Error): void {
    if (!this.#end('broken')) return
    const kind = failureKind(error)
    this.#exchange.failure = kind
    noteFailure(kind, { agentId: this.#exchange.agent.id, requestId: this.#exchange.requestId }, this.#parts)
    this.#client.destroy()
  }

  /** Nothing more passes, in either direction. */
  cut(refusal: Refusal): void {
    if (!this.#end('broken')) return
    this.#exchange.refusal = refusal.refusal
    this.#control.abort(new Error(refusal.refusal))
    this.#client.destroy()
  }

  #end(ending: Exchange['ending']): boolean {
    if (this.#isOver) return false
    this.#isOver = true
    clearInterval(this.#timer)
    this.#parts.metrics?.add(webSockets, -1)
    this.#exchange.ending ??= ending
    return true
  }
}
