/**
 * WebSockets (RFC 6455). The handshake is decided like any request. After the handshake the gateway passes bytes both ways
 * and does not read them.
 */
import type { Socket } from 'node:net'
import type { Refusal } from '../../base/refusals.ts'
import { requestIdField } from '../../http/names.ts'
import { webSockets } from '../../telemetry/layout.ts'
import type { Control, ResponseHead, UpstreamHandler, UpstreamRequest } from '../../upstream/handler.ts'
import type { ExchangeSender, Sendable } from '../exchange.ts'
import type { Parts } from '../parts.ts'
import { checkAccepted } from '../steps/admit.ts'
import { closeCircuit } from '../steps/origin.ts'
import { answerFields } from './answer-fields.ts'
import { Tunnel } from './tunnel.ts'
import { guardFields } from './upstream-request.ts'

/** Handles the answer when the handshake was not accepted, as for any request. */
type Plain = UpstreamHandler & ExchangeSender

/** Sends a handshake, and passes bytes once it is accepted. */
export class WebSocketSender implements UpstreamHandler, ExchangeSender {
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
    const count = (change: 1 | -1) => this.#parts.metrics.add(webSockets, change)
    this.#tunnel = new Tunnel(this.#exchange, { upstream, control, count }, this.#parts)
    this.#tunnel.open(acceptance(guardFields(this.#head.fields, this.#exchange, this.#parts), this.#exchange))
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

/** The head that tells the client that its handshake was accepted. */
function acceptance(received: readonly string[], exchange: Sendable): string {
  const ours = ['Upgrade', 'websocket', 'Connection', 'Upgrade', requestIdField, exchange.requestId]
  const fields = [...answerFields(received, exchange), ...ours]
  let head = 'HTTP/1.1 101 Switching Protocols\r\n'
  for (let i = 0; i < fields.length; i += 2) head += `${fields[i]}: ${fields[i + 1]}\r\n`
  return `${head}\r\n`
}
