/** What the main thread and the storage thread say to each other. */
import type { TableName } from '../methods.ts'

/** Options of the storage thread; `directory` exists. */
export interface WorkerOptions {
  readonly directory: string
  /** Cap on the size of the database, in pages of 4,096 bytes; none when undefined. */
  readonly maxPages: number | undefined
  /** Who has the say about each call (claims.ts). */
  readonly claims: SharedArrayBuffer
}

/** One call of a method. `id` comes back with the reply; no two calls that wait have the same. */
export interface Call {
  readonly id: number
  readonly table: TableName
  readonly method: string
  readonly args: readonly unknown[]
}

export type Request = Call | 'close'

export type Reply = { readonly id: number } & ({ readonly value: unknown } | { readonly failure: string })

/**
 * `ready` or `refused` comes first and once; then replies, all of one commit together. `fault` says why nothing is
 * written any more, `restored` what was done because an older database was brought back.
 */
export type Message =
  | 'ready'
  | { readonly refused: string }
  | { readonly fault: string }
  | { readonly restored: string }
  | readonly Reply[]
