/**
 * Tunnels that the gateway does not open. CONNECT is decided by host and port; what follows is not read, but for the name in
 * the first message of TLS, which must be that of CONNECT.
 */
import type { Socket } from 'node:net'
import { type Refusal, refuse } from '../../base/refusals.ts'
import { awaitHello } from '../../intercept/await-hello.ts'
import { established } from '../../intercept/interception.ts'
import { openTunnels } from '../../telemetry/layout.ts'
import { failureKind, isPublicDestination, noteFailure, outcomeOfError, refuseFailure } from '../../upstream/failure.ts'
import type { Control } from '../../upstream/handler.ts'
import { answer } from '../answer.ts'
import type { ExchangeSender, Sendable } from '../exchange.ts'
import type { Again, Parts } from '../parts.ts'
import { holds } from '../rights.ts'
import { closeCircuit } from '../steps/origin.ts'
import { Tunnel } from './tunnel.ts'

/** Longest time for the first message of TLS, milliseconds. */
const helloMs = 5_000

export class OpaqueTunnel implements ExchangeSender {
  readonly #exchange: Sendable
  readonly #parts: Parts
  readonly #again: Again
  #upstream: Socket | undefined
  #tunnel: Tunnel | undefined
  #isOver = false

  constructor(exchange: Sendable, parts: Parts, again: Again) {
    this.#exchange = exchange
    this.#parts = parts
    this.#again = again
    exchange.sender = this
  }

  send(): void {
    const { target, resolution } = this.#exchange
    this.#parts.dialTcp(resolution.addresses, { origin: target.origin, http2: false }, (error, upstream) => {
      if (upstream === undefined) this.#fail(error ?? new Error('cannot happen: neither an error nor a socket'))
      else this.#connected(upstream)
    })
  }

  #fail(error: Error): void {
    if (this.#isOver) return
    this.#isOver = true
    const { agent, requestId, resolution, target } = this.#exchange
    const kind = failureKind(error)
    noteFailure(kind, { agentId: agent.id, requestId, host: target.origin.host }, this.#parts)
    closeCircuit(this.#exchange, outcomeOfError(error, false, resolution.isFirstOnly), this.#parts)
    answer(this.#exchange, refuseFailure(kind, isPublicDestination(resolution)))
  }

  #connected(upstream: Socket): void {
    if (this.#isOver) {
      upstream.destroy()
      return
    }
    closeCircuit(this.#exchange, 'success', this.#parts)
    // It may have waited for the connection.
    if (!holds(this.#exchange, this.#parts)) {
      this.#isOver = true
      this.#exchange.sender = undefined
      upstream.destroy()
      this.#again(this.#exchange, this.#parts)
      return
    }
    this.#upstream = upstream
    upstream.on('error', error => this.#broken(error)).on('close', () => this.clientClosed())
    const control: Control = {
      abort: () => upstream.destroy(),
      pause: () => upstream.pause(),
      resume: () => upstream.resume(),
    }
    const count = (change: 1 | -1) => this.#parts.metrics.change(openTunnels, 'tunnel', change)
    this.#tunnel = new Tunnel(this.#exchange, { upstream, control, count }, this.#parts)
    this.#exchange.socket.write(established)
    if (this.#parts.interception?.hosts.mayCarryAny(this.#exchange.target.origin)) this.#pass()
    else this.#awaitHello()
  }

  #pass(): void {
    const upstream = this.#upstream
    const tunnel = this.#tunnel
    if (upstream === undefined || tunnel === undefined) throw new Error('cannot happen: a tunnel without its ends')
    tunnel.open()
    upstream.on('data', (chunk: Buffer) => tunnel.passDown(chunk)).on('end', () => tunnel.finish())
  }

  #awaitHello(): void {
    const { socket } = this.#exchange
    const timer = setTimeout(() => this.#refuse('no TLS'), helloMs)
    const endWait = (): void => {
      clearTimeout(timer)
      stop()
      socket.off('close', endWait).off('end', leave)
    }
    const leave = (): void => {
      endWait()
      this.clientClosed()
    }
    const stop = awaitHello(socket, (hello, read) => {
      endWait()
      if (hello === 'malformed') this.#refuse('no TLS')
      else if (!this.#isNamed(hello.name)) this.#refuse('sni mismatch')
      else {
        socket.unshift(read)
        this.#pass()
        socket.resume()
      }
    })
    socket.once('close', endWait).once('end', leave)
  }

  /** Only a client of a bare address has no name to send. */
  #isNamed(name: string | undefined): boolean {
    const { host, address } = this.#exchange.target.origin
    return name === undefined ? address !== undefined : name.toLowerCase() === (address ?? host)
  }

  #refuse(reason: string): void {
    const { agent, target, requestId } = this.#exchange
    this.#parts.interception?.failed({ id: requestId, agentId: agent.id, origin: target.origin.key }, reason)
    this.#exchange.cause = reason
    this.#tunnel?.cut(refuse('invalid_request'))
  }

  #broken(error: Error): void {
    this.#tunnel?.break(error)
  }

  clientClosed(): void {
    if (this.#tunnel !== undefined) this.#tunnel.finish()
    else {
      this.#isOver = true
      this.#exchange.ending ??= 'aborted'
    }
  }

  end(refusal: Refusal): void {
    if (this.#tunnel !== undefined) this.#tunnel.cut(refusal)
    else {
      this.#isOver = true
      answer(this.#exchange, refusal)
    }
  }
}
