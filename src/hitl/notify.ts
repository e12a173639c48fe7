/**
 * Sends events of held requests and agents to webhooks and by e-mail. The messages wait in the store. One gateway at a time
 * sends the messages of a queue, in order: it holds a lease on it. When it dies, another gateway with the receiver in its
 * configuration goes on, beginning with the message that may have been sent already. A receiver that is down delays no other.
 */

import type { EventLog, HitlEvent } from './events.ts'
import { MessageSender, type SenderParts } from './message-sender.ts'
import type { Receiver } from './receiver.ts'

export interface NotifierOptions extends SenderParts {
  readonly receivers: readonly Receiver[]
  /** Wakes the sender when there may be a message to send. */
  readonly events: Pick<EventLog, 'subscribe'>
  /** UUID of this gateway. */
  readonly owner: string
}

export type Notifier = ReturnType<typeof createNotifier>

const leaseMs = 30_000
/** Time after which a lease is renewed, or one of another gateway is looked at, milliseconds. */
const renewMs = 10_000
export function createNotifier(options: NotifierOptions) {
  const { clock, store, owner, events } = options
  const stop = new AbortController()
  const senders = options.receivers.flatMap(receiver =>
    receiver.queues.map(queue => new MessageSender({ ...options, receiver, queue, stop: stop.signal })),
  )
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
      sender.mustCatchUp = true
    }
    void sendAll()
  }

  return {
    /** Takes and renews leases. Call every second or so. */
    async sweep() {
      if (names.length > 0 && !stop.signal.aborted && clock.steady() >= takeAt) await take()
    },
    /** Resolves when nothing is left to send for the hooks that this gateway has. */
    idle: sendAll,
    /** Ends what is under way. Messages that are not sent yet stay in the store. */
    async close() {
      close()
      stop.abort()
      await sendAll()
      // A lease that is not released expires.
      if (names.length > 0) await store.deliveries.leave(owner).catch(() => {})
    },
  }
}
