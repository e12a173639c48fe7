/** Messages for webhooks in the storage contract: each waits in the store until the gateway that has its hook has sent it. */
import type { EventNote } from './events.ts'

/** A hook, and the events that the gateway which causes them leaves for it. */
export interface WebhookSubscription {
  /** The same in each gateway that has the hook in its configuration. */
  readonly hook: string
  readonly types: readonly string[]
}

export interface Delivery {
  readonly id: number
  /** Id of the event; a delivery that is repeated has the same one. */
  readonly event: string
  readonly note: EventNote
}

/** Times are milliseconds since the epoch. */
export interface DeliveryLease {
  /** UUID of the gateway. */
  readonly owner: string
  readonly now: number
  readonly until: number
}

/** Messages of one agent for one hook that were dropped. */
export interface Dropped {
  readonly hook: string
  readonly agentId: string
  readonly count: number
  /** They waited too long; else there were too many. */
  readonly isOld: boolean
}

export interface DeliveryTable {
  /** Takes the hooks that nobody else has, and keeps those that the owner has. Returns them. */
  take(hooks: readonly string[], lease: DeliveryLease): Promise<readonly string[]>
  /** The first ones for a hook, in the order of the commits. */
  next(hook: string, limit: number): Promise<readonly Delivery[]>
  /** They were sent, or never can be. */
  remove(deliveries: readonly Pick<Delivery, 'id' | 'event'>[]): Promise<void>
  /** Others may take the hooks of the owner. */
  leave(owner: string): Promise<void>
  /**
   * Drops those older than `before`. Of a hook that has more than `max`, it drops the oldest of the agents that have the most
   * there: an agent that has no more than its equal share of `max` loses none.
   */
  prune(before: number, max: number): Promise<readonly Dropped[]>
}

export const hooksFor = (type: EventNote['type'], subscriptions: readonly WebhookSubscription[]): readonly string[] =>
  subscriptions.filter(({ types }) => types.includes(type)).map(({ hook }) => hook)
