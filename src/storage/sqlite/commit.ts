/**
 * Group commit: calls that write and wait at the same time share one transaction, and so one wait for the disk.
 */
import type { DatabaseSync } from 'node:sqlite'
import type { WebhookSubscription } from '../deliveries.ts'
import { run } from '../operations.ts'
import type { Db } from '../schema.ts'
import { WriteNotes } from '../unit.ts'
import type { CallClaims } from './claims.ts'
import type { Connected } from './database.ts'
import type { DatabaseFiles } from './files.ts'
import { flush } from './flush.ts'
import type { StorageCall, StorageReply } from './protocol.ts'

/** SQLITE_IOERR_FSYNC and SQLITE_IOERR_DIR_FSYNC. */
const failedSync = new Set([1034, 1290])

const lostWrite = 'a write did not reach the disk; restart the gateway'

export interface CommitOptions {
  readonly claims: CallClaims
  readonly files: Pick<DatabaseFiles, 'problem' | 'committed'>
  readonly subscriptions?: () => readonly WebhookSubscription[]
  /** Called once, with the reason why nothing more is written. */
  readonly onFault: (why: string) => void
}

export class Committer {
  readonly #connection: DatabaseSync
  readonly #db: Db
  readonly #options: CommitOptions
  /**
   * After a failed sync the kernel forgets the lost pages, and the next sync would succeed over them. What is written
   * to a file that was moved or replaced is lost, too. So nothing more is written until a restart has read back what
   * is really there.
   */
  #stopped: Error | undefined

  constructor({ connection, db }: Connected, options: CommitOptions) {
    this.#connection = connection
    this.#db = db
    this.#options = options
  }

  /** Runs `calls` in one transaction. Each either holds, once this resolves, or has changed nothing. */
  commit(calls: readonly StorageCall[]): Promise<StorageReply[]> {
    return this.#commit(calls, 'together')
  }

  async #commit(calls: readonly StorageCall[], how: Manner): Promise<StorageReply[]> {
    try {
      this.#assertSound()
      this.#connection.exec('begin immediate')
    } catch (error) {
      return calls.map(call => failed(call, error))
    }
    const replies: StorageReply[] = []
    try {
      for (const call of calls) replies.push(await (how === 'together' ? this.#run(call) : this.#runApart(call)))
      this.#connection.exec('commit')
      this.#assertSound()
      this.#noteCommit()
      return replies
    } catch (error) {
      if (this.#connection.isTransaction) this.#connection.exec('rollback')
      if (isFailedSync(error)) this.#stop(lostWrite)
      if (calls.length === 1) return calls.map(call => failed(call, error))
      const isCall = how === 'together' && replies.length < calls.length
      return isCall ? this.#commit(calls, 'apart') : this.#oneByOne(calls)
    }
  }

  /** Copying the log may fail, on a full disk for instance: it is tried again. But a sync that fails loses pages there too. */
  #noteCommit(): void {
    try {
      this.#options.files.committed()
    } catch (error) {
      if (isFailedSync(error)) this.#stop(lostWrite)
    }
  }

  /** Looks whether the files are still those that were opened. */
  look(): void {
    const why = this.#options.files.problem()
    if (why !== undefined) this.#stop(why)
  }

  #assertSound(): void {
    this.look()
    if (this.#stopped !== undefined) throw this.#stopped
  }

  #stop(why: string): void {
    if (this.#stopped !== undefined) return
    this.#stopped = new Error(why)
    this.#options.onFault(why)
  }

  /** The one that cannot be committed must not take the others with it. */
  async #oneByOne(calls: readonly StorageCall[]): Promise<StorageReply[]> {
    const replies: StorageReply[] = []
    for (const call of calls) replies.push(...(await this.commit([call])))
    return replies
  }

  async #run(call: StorageCall): Promise<StorageReply> {
    if (!this.#options.claims.begin(call.id)) return failed(call, givenUp)
    const notes = new WriteNotes(this.#db, this.#options.subscriptions?.())
    const value = await run(notes, call)
    await flush(notes)
    return { value, changes: notes.changes }
  }

  async #runApart(call: StorageCall): Promise<StorageReply> {
    this.#connection.exec('savepoint call')
    try {
      const reply = await this.#run(call)
      this.#connection.exec('release call')
      return reply
    } catch (error) {
      // Some errors, a full disk among them, make SQLite roll back all of the transaction.
      if (!this.#connection.isTransaction) throw error
      this.#connection.exec('rollback to call; release call')
      return failed(call, error)
    }
  }
}

/**
 * Of calls that share a transaction, hardly one ever fails: together they need no savepoints, each of which copies all pages
 * that its call changes. When one fails after all, they are run apart, so that it takes none of the others with it.
 */
type Manner = 'together' | 'apart'

const givenUp = new Error('given up before it was begun')

/** A call that only reads. */
export async function read(db: Db, call: StorageCall, claims: CallClaims): Promise<StorageReply> {
  if (!claims.begin(call.id)) return failed(call, givenUp)
  try {
    return { value: await run(db, call), changes: [] }
  } catch (error) {
    return failed(call, error)
  }
}

function isFailedSync(error: unknown): boolean {
  return error instanceof Error && 'errcode' in error && failedSync.has(Number(error.errcode))
}

function failed({ table, method }: StorageCall, error: unknown): StorageReply {
  return { failure: `${table}.${method}: ${error instanceof Error ? error.message : String(error)}` }
}
