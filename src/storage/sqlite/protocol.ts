/** Messages between the main thread and the storage thread. */
import type { ThreadWatch } from '../../runtime/watchdog.ts'
import type { WebhookSubscription } from '../deliveries.ts'
import type { StoreChange } from '../feed.ts'
import type { StoreOperation } from '../operations.ts'

/** Options of the storage thread; `directory` exists. */
export interface WorkerOptions {
  readonly directory: string
  /** Cap on the size of the database, in pages of 4,096 bytes; none when undefined. */
  readonly maxPages: number | undefined
  /** Hooks for which events are left in the store. */
  readonly subscriptions: readonly WebhookSubscription[]
  /** Lets this thread watch the first one. */
  readonly watch: ThreadWatch | undefined
  /** Whether each call was begun or given up (claims.ts). */
  readonly claims: SharedArrayBuffer
}

export interface StorageCall extends StoreOperation {
  /** Its place in the claims. */
  readonly id: number
}

export interface Done {
  readonly value: unknown
  /** What it changed for the followers of the feed. */
  readonly changes: readonly StoreChange[]
}

export type StorageReply = Done | { readonly failure: string }

export interface StorageCalls {
  /**
   * First, and once: opens the database. Resolves with what was done because an older database was brought back. Rejects
   * with StartupError when the database cannot be used.
   */
  open(): Promise<string | undefined>
  run(call: StorageCall): Promise<Done>
  /** Replaces the hooks for which events are left in the store. */
  subscribe(hooks: readonly WebhookSubscription[]): Promise<void>
  /** Closes the database once all calls before are answered. */
  close(): Promise<void>
}

export interface StorageNews {
  /** Nothing more is written, and why. */
  fault(why: string): void
}
