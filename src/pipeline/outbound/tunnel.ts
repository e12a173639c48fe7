import type { Socket } from 'node:net'
import { type Refusal, refuse } from '../../base/refusals.ts'
import { failureKind, noteFailure } from '../../upstream/failure.ts'
import type { Control } from '../../upstream/handler.ts'
import type { Exchange, Sendable } from '../exchange.ts'
import type { Parts } from '../parts.ts'
import { isStillAdmitted } from '../rights.ts'
import { stillAllows } from './live.ts'

interface TunnelEnds {
  readonly upstream: Socket
  /** Of the exchange with the upstream. */
  readonly control: Control
  /** Counts open ones. */
  readonly count: (change: 1 | -1) => void
}

/** Interval of the checks of rights and limits, milliseconds. */
const lookMs = 1_000
/** Checks between two decisions on the handshake: a decision costs more than a check. */
const looksPerDecision = 5
/** Longest time for the last bytes, milliseconds. */
const lingerMs = 10_000

/** An open WebSocket, or a tunnel that is not opened: bytes both ways, within limits. */
export class Tunnel {
  readonly #exchange: Sendable
  readonly #client: Socket
  readonly #upstream: Socket
  readonly #control: Control
  readonly #count: TunnelEnds['count']
  readonly #parts: Parts
  readonly #since: number
  /** When the last byte moved, steady milliseconds. */
  #movedAt: number
  #timer: NodeJS.Timeout | undefined
  #looks = 0
  #isOpen = false
  #isOver = false

  constructor(exchange: Sendable, { upstream, control, count }: TunnelEnds, parts: Parts) {
    this.#exchange = exchange
    this.#client = exchange.socket
    this.#upstream = upstream
    this.#control = control
    this.#count = count
    this.#parts = parts
    this.#since = parts.clock.steady()
    this.#movedAt = this.#since
  }

  /** @param head of the answer that is still to be sent */
  open(head = ''): void {
    if (!this.#mayPass()) return
    if (head !== '') this.#client.write(head, 'latin1')
    this.#client.on('data', (chunk: Buffer) => this.#passUp(chunk)).on('end', () => this.#upstream.end())
    if (this.#client.readableEnded) this.#upstream.end()
    this.#timer = setInterval(() => this.#look(), lookMs)
    this.#count(1)
    this.#isOpen = true
    for (const listener of this.#parts.ends) listener.opened?.(this.#exchange)
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
    const fenced = this.#isOver ? undefined : this.#parts.fencedAs?.()
    if (fenced !== undefined) this.cut(refuse(fenced))
    return !this.#isOver
  }

  /** Ends the tunnel when its agent loses its rights, the rules in force do not allow it, or a limit is reached. */
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
    this.cut(refuse('busy', 'The connection has reached a limit of the gateway.'))
  }

  /** One side has closed the tunnel. Bytes that were written before are still sent. */
  finish(): void {
    if (!this.#end('forwarded')) return
    const close = (): void => {
      clearTimeout(late)
      this.#client.destroy()
      this.#control.abort(new Error('the tunnel was closed'))
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
    const { agent, requestId, target } = this.#exchange
    noteFailure(kind, { agentId: agent.id, requestId, host: target.origin.host }, this.#parts)
    this.#client.destroy()
  }

  /** Ends the tunnel at once, in both directions. */
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
    if (this.#isOpen) this.#count(-1)
    this.#exchange.ending ??= ending
    return true
  }
}
