/**
 * Socket Mode: clicks come over an outgoing WebSocket, so that no port is open. One gateway of a fleet has it, by a lease like
 * those of the queues. Each envelope is confirmed before its click is handled; one that is repeated is confirmed alone.
 */
import { forgetOldest } from '../../base/records.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { DeliveryTable } from '../../storage/deliveries.ts'
import { parse, type SlackCall, textAt } from './api.ts'

/** The part of a WebSocket that is used. */
interface ClickSocket {
  send(text: string): void
  close(): void
}

interface ClickHandlers {
  readonly onText: (text: string) => void
  readonly onClose: () => void
}

export interface SlackSocketParts {
  /** With the app-level token. */
  readonly call: SlackCall
  readonly deliveries: Pick<DeliveryTable, 'take'>
  /** UUID of this gateway. */
  readonly owner: string
  readonly clock: Clock
  /** Opens a connection past the egress guard; rejects when there is none. */
  readonly connect: (url: string, handlers: ClickHandlers) => Promise<ClickSocket>
  /** False: there are too many; Slack sends it again. */
  readonly onPayload: (payload: unknown) => boolean
  readonly report: (what: string, error: unknown) => void
}

const leaseName = 'slack clicks'
const leaseMs = 30_000
const renewMs = 10_000
/** Pauses between two attempts to connect, milliseconds. */
const [shortestPause, longestPause] = [1_000, 60_000]
const maxEnvelopes = 1_000

export class SlackSocket {
  readonly #parts: SlackSocketParts
  readonly #stop = new AbortController()
  readonly #envelopes = new Set<string>()
  #socket: ClickSocket | undefined
  #isOpening = false
  #leaseAt = Number.NEGATIVE_INFINITY
  #connectAt = Number.NEGATIVE_INFINITY
  #pause = shortestPause

  constructor(parts: SlackSocketParts) {
    this.#parts = parts
  }

  /** Takes or renews the lease, and connects while this gateway has it. Call every second or so. */
  async sweep(): Promise<void> {
    const { clock, deliveries, owner } = this.#parts
    const steady = clock.steady()
    if (this.#stop.signal.aborted) return
    if (steady >= this.#leaseAt) {
      this.#leaseAt = steady + renewMs
      const now = clock.now()
      const taken = await deliveries.take([leaseName], { owner, now, until: now + leaseMs }).catch(() => [])
      // Another gateway may have it, or it is not certain that this one does.
      if (taken.length === 0) {
        this.#connectAt = Number.POSITIVE_INFINITY
        this.#drop()
      } else if (this.#connectAt === Number.POSITIVE_INFINITY) this.#connectAt = steady
    }
    if (this.#socket === undefined && !this.#isOpening && steady >= this.#connectAt) void this.#open()
  }

  close(): void {
    this.#stop.abort()
    this.#drop()
  }

  #drop(): void {
    this.#socket?.close()
    this.#socket = undefined
  }

  async #open(): Promise<void> {
    const { call, connect, report, clock } = this.#parts
    this.#isOpening = true
    this.#connectAt = clock.steady() + this.#pause
    this.#pause = Math.min(this.#pause * 2, longestPause)
    try {
      const { refused, body } = await call('apps.connections.open', {}, this.#stop.signal)
      if (refused !== undefined) throw refused.failure
      let opened: ClickSocket | undefined
      const isCurrent = () => opened !== undefined && this.#socket === opened
      opened = await connect(textAt(body, 'url'), {
        onText: text => isCurrent() && this.#take(text),
        onClose: () => isCurrent() && this.#drop(),
      })
      if (this.#stop.signal.aborted || this.#connectAt === Number.POSITIVE_INFINITY) opened.close()
      else {
        this.#socket = opened
        this.#pause = shortestPause
      }
    } catch (error) {
      if (!this.#stop.signal.aborted) report('clicks in Slack do not arrive: there is no connection', error)
    } finally {
      this.#isOpening = false
    }
  }

  #take(text: string): void {
    const message = parse(text)
    const id = textAt(message, 'envelope_id')
    // Slack is about to close the connection, or says that it is open.
    if (textAt(message, 'type') === 'disconnect') {
      this.#connectAt = this.#parts.clock.steady()
      this.#drop()
    }
    if (id === '' || id.length > 100) return
    const isNew = !this.#envelopes.has(id)
    if (isNew && textAt(message, 'type') === 'interactive' && !this.#parts.onPayload(message['payload'])) return
    this.#envelopes.add(id)
    forgetOldest(this.#envelopes, maxEnvelopes)
    this.#socket?.send(JSON.stringify({ envelope_id: id }))
  }
}
