/**
 * Webhooks: sends events of held requests and agents to other systems. The messages wait in the store. One gateway at a time
 * sends the messages of a hook, in order: it holds a lease on the hook. When it dies, another gateway with the hook in its
 * configuration goes on, beginning with the message that may have been sent already. A hook that is down delays no other.
 */
import { hash } from 'node:crypto'
import { setTimeout } from 'node:timers/promises'
import type { Clock } from '../runtime/clock.ts'
import type { Delivery, WebhookSubscription } from '../storage/deliveries.ts'
import type { EventNote } from '../storage/events.ts'
import type { Store } from '../storage/store.ts'
import type { EventLog, HitlEvent } from './events.ts'
import { type Hook, type MessageOptions, messageOf, type Post } from './messages.ts'

export interface NotifierOptions extends MessageOptions {
  readonly hooks: readonly Hook[]
  readonly store: Pick<Store, 'deliveries'>
  /** Wakes the sender when there may be a message to send. */
  readonly events: Pick<EventLog, 'subscribe'>
  /** UUID of this gateway. */
  readonly owner: string
  readonly clock: Clock
  readonly post: Post
  /** The data of an event for a hook. Throws for the event of another version. */
  readonly describe: (event: EventNote) => HitlEvent['data']
  readonly report: (what: string, error: unknown) => void
  /** Pauses before each retry, milliseconds. */
  readonly delays?: readonly number[]
}

export interface Notifier {
  /** Takes and renews leases. Call every second or so. */
  sweep(): Promise<void>
  /** Resolves when nothing is left to send for the hooks that this gateway has. */
  idle(): Promise<void>
  /** Ends what is under way. Messages that are not sent yet stay in the store. */
  close(): Promise<void>
}

const backOff = [1_000, 5_000, 30_000, 120_000, 600_000]
const leaseMs = 30_000
/** Time after which a lease is renewed, or one of another gateway is looked at, milliseconds. */
const renewMs = 10_000
/** Messages read at a time. */
const readAtOnce = 20

/** Name of a hook in the store. The address often contains a key. */
export const hookName = ({ Url, Format }: Hook): string => hash('sha256', `${Format} ${Url}`).slice(0, 32)

/** The events that a gateway with these hooks stores for them. */
export function subscriptionsOf(hooks: readonly Hook[]): readonly WebhookSubscription[] {
  const byName = Map.groupBy(hooks, hookName)
  return [...byName].map(([hook, same]) => ({ hook, types: same.flatMap(typesOf) }))
}

const typesOf = ({ Events }: Hook): WebhookSubscription['types'] => (Events.length === 0 ? ['pending'] : Events)

export function createNotifier(options: NotifierOptions): Notifier {
  const { clock, store, owner, events } = options
  const stop = new AbortController()
  const senders = options.hooks.map((hook, index) => new WebhookSender({ ...options, hook, index, stop: stop.signal }))
  const names = [...new Set(senders.map(({ name }) => name))]
  const sendAll = async (): Promise<void> => void (await Promise.all(senders.map(sender => sender.send())))
  const notify = (event: HitlEvent): void => {
    for (const sender of senders) sender.notify(event)
  }
  const { close } = events.subscribe(notify, undefined, sendAll)
  let takeAt = Number.NEGATIVE_INFINITY

  async function take(): Promise<void> {
    const [steady, wall] = [clock.steady(), clock.now()]
    takeAt = steady + renewMs
    const until = wall + leaseMs
    const taken = new Set(await store.deliveries.take(names, { owner, now: wall, until }))
    for (const sender of senders) {
      sender.lease = taken.has(sender.name) ? { steady: steady + leaseMs, wall: until } : undefined
    }
    void sendAll()
  }

  return {
    async sweep() {
      if (names.length > 0 && !stop.signal.aborted && clock.steady() >= takeAt) await take()
    },
    idle: sendAll,
    async close() {
      close()
      stop.abort()
      await sendAll()
      // A lease that is not released expires.
      if (names.length > 0) await store.deliveries.leave(owner).catch(() => {})
    },
  }
}

interface SenderOptions extends NotifierOptions {
  readonly hook: Hook
  readonly index: number
  readonly stop: AbortSignal
}

/** The outcome of a message. `left`: another gateway, or this one later, sends it. */
interface DeliveryResult {
  readonly left: boolean
  readonly failure?: unknown
}

/** Sends the messages of one hook while this gateway has its lease. */
class WebhookSender {
  readonly name: string
  /** Times at which the lease ends. The steady clock of a paused machine stands still. */
  lease: { readonly steady: number; readonly wall: number } | undefined
  readonly #options: SenderOptions
  readonly #types: ReadonlySet<string>
  #sending: Promise<void> | undefined
  /** There may be more messages than were read last. */
  #more = false
  /** Event that was sent and may still be in the store. */
  #done: string | undefined

  constructor(options: SenderOptions) {
    this.#options = options
    this.name = hookName(options.hook)
    this.#types = new Set(typesOf(options.hook))
  }

  get #mayGoOn(): boolean {
    const { stop, clock } = this.#options
    const { lease } = this
    return !stop.aborted && lease !== undefined && clock.steady() < lease.steady && clock.now() < lease.wall
  }

  notify({ type }: HitlEvent): void {
    if (this.#types.has(type)) void this.send()
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
        const read = await deliveries.next(this.name, readAtOnce)
        if (!(await this.#sendEach(read))) return
        if (read.length === readAtOnce) this.#more = true
      }
    } catch {
      // The store fails: the next sweep or event tries again.
    } finally {
      this.#sending = undefined
    }
  }

  /** False when the rest must be sent later or by another gateway. */
  async #sendEach(deliveries: readonly Delivery[]): Promise<boolean> {
    for (const delivery of deliveries) {
      if (await this.#isLeft(delivery)) return false
      await this.#options.store.deliveries.remove(delivery)
    }
    return true
  }

  async #isLeft(delivery: Delivery): Promise<boolean> {
    if (this.#done === delivery.event) return false
    const event = this.#eventOf(delivery)
    const { left, failure } = event === undefined ? { left: false } : await this.#deliver(event)
    if (!left) this.#done = delivery.event
    if (failure !== undefined) {
      const { type, hitlId, data } = delivery.note
      const failureText = left ? 'has not been told yet' : 'was not told'
      this.#options.report(
        `webhook ${this.#options.index} ${failureText} of ${type} ${hitlId ?? data.agentId}`,
        failure,
      )
    }
    return left
  }

  #eventOf({ event: id, note }: Delivery): HitlEvent | undefined {
    const { type, at, hitlId } = note
    try {
      return { id, type, at, hitlId, data: this.#options.describe(note) }
    } catch (error) {
      // Another version of the gateway may have written it.
      this.#options.report('an event for a webhook could not be read', error)
      return undefined
    }
  }

  /** Retries until the hook accepts the message, rejects it for good, or the tries are used up. */
  async #deliver(event: HitlEvent): Promise<DeliveryResult> {
    const { hook, stop, post, delays = backOff } = this.#options
    let failure: unknown
    for (const delay of [0, ...delays]) {
      // The pause is aborted only when the gateway stops: nothing more is sent.
      if (delay > 0) await setTimeout(delay, undefined, { signal: stop }).catch(() => {})
      if (!this.#mayGoOn) return { left: true, failure }
      try {
        const status = await post(messageOf(hook, event, this.#options), stop)
        if (status >= 200 && status < 300) return { left: false }
        failure = `answered ${status}`
        if (!isPassing(status)) return { left: false, failure }
      } catch (error) {
        failure = error
      }
    }
    return { left: stop.aborted, failure }
  }
}

/** Whether the hook may accept the same message later. */
function isPassing(status: number): boolean {
  return status >= 500 || status === 408 || status === 429
}
