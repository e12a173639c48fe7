/** Sends the messages of a queue that wait in the store, in their order, while this gateway has its lease. */
import { setTimeout } from 'node:timers/promises'
import type { Clock } from '../runtime/clock.ts'
import type { Delivery } from '../storage/deliveries.ts'
import type { EventNote } from '../storage/events.ts'
import type { HitlBrief, Store } from '../storage/store.ts'
import type { HitlEvent } from './events.ts'
import type { MessageQueue, NotAccepted, Receiver } from './receiver.ts'

const minute = 60_000

export interface SenderParts {
  readonly store: Pick<Store, 'deliveries'>
  readonly clock: Clock
  /** The data of an event for a hook. Throws for the event of another version. */
  readonly describe: (event: EventNote) => HitlEvent['data']
  /** A request as it is now. */
  readonly find: (hitlId: string) => Promise<Pick<HitlBrief, 'status' | 'rule'> | undefined>
  /** Undefined for an agent that does not exist any more. */
  readonly ownerOf: (agentId: string) => string | undefined
  readonly report: (what: string, error: unknown) => void
  /** Pauses before each retry, milliseconds. */
  readonly delays?: readonly number[]
}

interface SenderOptions extends SenderParts {
  readonly receiver: Receiver
  readonly queue: MessageQueue
  readonly stop: AbortSignal
}

/** The outcome of a message. `left`: another gateway, or this one later, sends it. */
interface DeliveryResult {
  readonly left: boolean
  readonly failure?: unknown
}

const backOff = [1_000, 5_000, 30_000, 120_000, 600_000]
/** Messages read at a time. */
const readAtOnce = 20
/** A service that asks for more is asked again after it. */
const longestWaitMs = 600_000
/** Messages of a minute in a chat. The requests that come then are one message of the next minute. */
const chatPerMinute = 20
/** Requests in that message; more have another one. */
const longestBatch = 200

export class MessageSender {
  readonly name: string
  /** Times at which the lease ends. The steady clock of a paused machine stands still. */
  lease: { readonly steady: number; readonly wall: number } | undefined
  /** Messages that were sent before may be out of date. */
  mustCatchUp = false
  readonly #options: SenderOptions
  readonly #burst: Burst
  #sending: Promise<void> | undefined
  /** There may be more messages than were read last. */
  #more = false
  /** Messages that were sent and may still be in the store, by their events. */
  readonly #done = new Map<string, Delivery>()

  constructor(options: SenderOptions) {
    this.#options = options
    this.name = options.queue.name
    this.#burst = new Burst(options.clock, options.receiver.isChat ? chatPerMinute : Number.POSITIVE_INFINITY)
  }

  get #mayGoOn(): boolean {
    const { stop, clock } = this.#options
    const { lease } = this
    return !stop.aborted && lease !== undefined && clock.steady() < lease.steady && clock.now() < lease.wall
  }

  notify({ type }: HitlEvent): void {
    if (this.#options.queue.types.includes(type)) void this.send()
  }

  /** Resolves when nothing is left that this gateway may send now. */
  async send(): Promise<void> {
    this.#more = true
    if (this.#mayGoOn) this.#sending ??= this.#sendAll()
    await this.#sending
  }

  async #sendAll(): Promise<void> {
    const { deliveries } = this.#options.store
    try {
      while (this.#more && this.#mayGoOn) {
        this.#more = false
        if (this.mustCatchUp) await this.#catchUp()
        const isBatch = this.#burst.endsInBatch()
        const limit = isBatch ? longestBatch : readAtOnce
        const read = await deliveries.next(this.name, limit)
        if (!(await (isBatch ? this.#sendBatch(read) : this.#sendEach(read)))) return
        if (read.length === limit) this.#more = true
      }
    } catch {
      // The store fails: the next sweep or event tries again.
    } finally {
      this.#sending = undefined
    }
  }

  async #catchUp(): Promise<void> {
    const { receiver, stop } = this.#options
    this.mustCatchUp = false
    // What fails is tried again the next time.
    await receiver.catchUp?.(stop).catch(() => {})
  }

  /** False when the rest must be sent later or by another gateway. */
  async #sendEach(deliveries: readonly Delivery[]): Promise<boolean> {
    for (const delivery of deliveries) {
      if (this.#isEarly(delivery) || this.#burst.isFull || (await this.#isLeft(delivery))) {
        await this.#forget()
        return false
      }
      this.#done.set(delivery.event, delivery)
    }
    await this.#forget()
    return true
  }

  /** Takes what was sent out of the store, in one commit: a commit takes longer than most messages do. */
  async #forget(): Promise<void> {
    if (this.#done.size === 0) return
    await this.#options.store.deliveries.remove([...this.#done.values()])
    this.#done.clear()
  }

  /** Sends one message for all requests among these, and the others one by one. */
  async #sendBatch(deliveries: readonly Delivery[]): Promise<boolean> {
    const { receiver, store, stop } = this.#options
    const [requests, others] = [deliveries.filter(isRequest), deliveries.filter(one => !isRequest(one))]
    const wanted: HitlEvent[] = []
    const due = requests.filter(request => !this.#isEarly(request))
    for (const request of due) {
      const event = this.#eventOf(request)
      if (event !== undefined && (await this.#isWanted(event))) wanted.push(event)
    }
    const last = wanted.at(-1)
    if (last !== undefined) {
      const { length } = wanted
      const result = await this.#deliver(() =>
        length === 1 ? receiver.send(last, stop) : receiver.sendMore(last, length, stop),
      )
      this.#report(result, `${length} requests`)
      if (result.left) return false
    }
    await store.deliveries.remove(due)
    return due.length === requests.length && (await this.#sendEach(others))
  }

  #isEarly({ note }: Delivery): boolean {
    const { queue, clock } = this.#options
    return queue.afterMs > 0 && clock.now() < note.at + queue.afterMs
  }

  async #isLeft(delivery: Delivery): Promise<boolean> {
    if (this.#done.has(delivery.event)) return false
    const event = this.#eventOf(delivery)
    if (event === undefined || !(await this.#isWanted(event))) return false
    const { receiver, stop } = this.#options
    const result = await this.#deliver(() => receiver.send(event, stop))
    const { type, hitlId, data } = delivery.note
    this.#report(result, `${type} ${hitlId ?? data.agentId}`)
    return result.left
  }

  /** Whether the receiver is for this event. A request is looked up where its rule counts, or whether it still waits. */
  async #isWanted({ hitlId, data }: HitlEvent): Promise<boolean> {
    const { receiver, queue, find, ownerOf } = this.#options
    const { Rules, Owners } = receiver
    const owner = hitlId === null ? data['ownerId'] : undefined
    if (Owners.length > 0 && !Owners.includes(String(owner ?? ownerOf(String(data['agentId'])) ?? ''))) return false
    if (hitlId === null || (Rules.length === 0 && queue.afterMs === 0)) return true
    const request = await find(hitlId)
    if (request === undefined || (queue.afterMs > 0 && request.status !== 'Pending')) return false
    return Rules.length === 0 || (request.rule !== null && Rules.includes(request.rule))
  }

  #report({ left, failure }: DeliveryResult, what: string): void {
    if (failure === undefined) return
    const { queue, report } = this.#options
    report(`${queue.label} ${left ? 'has not been told yet' : 'was not told'} of ${what}`, failure)
  }

  #eventOf({ event: id, note }: Delivery): HitlEvent | undefined {
    const { type, at, hitlId } = note
    try {
      return { id, type, at, hitlId, data: this.#options.describe(note) }
    } catch (error) {
      // Another version of the gateway may have written it.
      this.#options.report('an event for a message could not be read', error)
      return undefined
    }
  }

  /** Retries until the receiver accepts the message, rejects it for good, or the tries are used up. */
  async #deliver(send: () => Promise<NotAccepted | undefined>): Promise<DeliveryResult> {
    const { stop, delays = backOff } = this.#options
    this.#burst.count()
    let failure: unknown
    let waitMs = 0
    for (const least of [0, ...delays]) {
      const delay = Math.max(least, waitMs)
      // A service that is down for long must not have what came before again when another gateway goes on.
      if (delay > 0) await this.#forget().catch(() => {})
      // The pause is aborted only when the gateway stops: nothing more is sent.
      if (delay > 0) await setTimeout(delay, undefined, { signal: stop }).catch(() => {})
      if (!this.#mayGoOn) return { left: true, failure }
      try {
        const refused = await send()
        if (refused === undefined) return { left: false }
        failure = refused.failure
        waitMs = Math.min(refused.waitMs ?? 0, longestWaitMs)
        if (!refused.isPassing) return { left: false, failure }
      } catch (error) {
        failure = error
      }
    }
    return { left: stop.aborted, failure }
  }
}

const isRequest = ({ note }: Delivery): boolean => note.type === 'pending'

/** Messages of the minute under way. */
class Burst {
  readonly #clock: Pick<Clock, 'steady'>
  readonly #max: number
  #since = Number.NEGATIVE_INFINITY
  #count = 0

  constructor(clock: Pick<Clock, 'steady'>, max: number) {
    this.#clock = clock
    this.#max = max
  }

  get isFull(): boolean {
    return this.#count >= this.#max && this.#clock.steady() < this.#since + minute
  }

  count(): void {
    this.endsInBatch()
    this.#count += 1
  }

  /** Begins another minute when the last one is over. True when that one was full: what waits since is one message. */
  endsInBatch(): boolean {
    if (this.#clock.steady() < this.#since + minute) return false
    const wasFull = this.#count >= this.#max
    this.#since = this.#clock.steady()
    this.#count = 0
    return wasFull
  }
}
