/** Browsers that get pushes, in the storage contract. */
import type { AuditEntry } from './audit.ts'

/** A browser of a person (RFC 8030). */
export interface PushSubscription {
  /** SHA-256 of the endpoint, base64url. */
  readonly id: string
  readonly agentId: string
  /** URL of the push service. Whoever has it can reach the browser. */
  readonly endpoint: string
  /** Public key of the browser, base64url: an uncompressed point of P-256. */
  readonly p256dh: string
  /** Secret of the subscription, base64url, 16 bytes. */
  readonly auth: string
  readonly createdAt: number
}

export interface SubscriptionTable {
  /**
   * The sealed key that signs pushes: the stored one, else `sealed`, which is then stored. A stored key that is `unusable` is
   * replaced, and the subscriptions that were made with it are removed.
   */
  key(sealed: Uint8Array, unusable?: Uint8Array): Promise<Uint8Array>
  all(): Promise<readonly PushSubscription[]>
  /** Keeps one, in the place of an earlier one with its id. Of more than `max` of an agent the oldest are removed. */
  keep(subscription: PushSubscription, max: number, entry: AuditEntry): Promise<'stored' | 'notFound'>
  /** Removes one of the agent. The entry of a person; null when the browser is gone, or its person may decide nothing. */
  remove(id: string, agentId: string, entry: AuditEntry | null): Promise<boolean>
}
