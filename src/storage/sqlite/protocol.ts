/** What the main thread and the storage thread ask of each other. */
import type { TableName } from '../methods.ts'

/** Options of the storage thread; `directory` exists. */
export interface WorkerOptions {
  readonly directory: string
  /** Cap on the size of the database, in pages of 4,096 bytes; none when undefined. */
  readonly maxPages: number | undefined
  /** Whether each call was begun or given up (claims.ts). */
  readonly claims: SharedArrayBuffer
}

/** One call of a method. */
export interface Call {
  /** Its place in the claims. */
  readonly id: number
  readonly table: TableName
  readonly method: string
  readonly args: readonly unknown[]
}

export type Reply = { readonly value: unknown } | { readonly failure: string }

/** What the main thread asks. */
export interface StorageCalls {
  /**
   * First, and once: opens the database. Resolves with what was done because an older database was brought back. Rejects
   * with StartupError when the database cannot be used.
   */
  open(): Promise<string | undefined>
  run(call: Call): Promise<unknown>
  /** Closes the database once all calls before are answered. */
  close(): Promise<void>
}

/** What the storage thread tells. */
export interface StorageNews {
  /** Nothing is written any more, and why. */
  fault(why: string): void
}
