/**
 * Writes of many callers share transactions, as many as wait while one is under way: a commit costs the database the same
 * for 32 of them as for one, and however many wait, they take one connection.
 */
import { StoreError } from '../store-error.ts'
import { commit } from './commit.ts'
import { type CommitParts, type Committed, type TransactionAttempt, transact } from './transaction.ts'
import type { WriteShare } from './write-share.ts'

/** Writes in one transaction, and of them with one key: these run one after the other. */
const maxTogether = 32
const maxOfKey = 4
/** Writes that wait or run, in all and of one caller. */
const maxWrites = 256
const maxOfCaller = 64

export class Batches {
  readonly #parts: CommitParts
  readonly #singles: Singles
  #waiting: QueuedAttempt[] = []
  #isRunning = false
  /** Writes that wait or run, of each caller. */
  readonly #counts = new Map<string, number>()
  #count = 0

  /** @param atOnce transactions of one write each that may run at the same time */
  constructor(parts: CommitParts, atOnce: number) {
    this.#parts = parts
    this.#singles = new Singles(parts, atOnce)
  }

  /** @throws StoreError when too many wait */
  async commit(attempt: TransactionAttempt, share: WriteShare): Promise<Committed> {
    if (this.#count >= maxWrites || (this.#counts.get(share.caller) ?? 0) >= maxOfCaller) {
      throw new StoreError('Too many calls wait for the storage')
    }
    this.#add(share.caller, 1)
    const { promise, resolve } = Promise.withResolvers<Committed>()
    const one = { ...share, attempt, resolve }
    if (share.isLong) this.#singles.add(one)
    else this.#waiting.push(one)
    void this.#run()
    return promise.finally(() => this.#add(share.caller, -1))
  }

  #add(caller: string, change: number): void {
    this.#count += change
    const count = (this.#counts.get(caller) ?? 0) + change
    if (count === 0) this.#counts.delete(caller)
    else this.#counts.set(caller, count)
  }

  async #run(): Promise<void> {
    if (this.#isRunning) return
    this.#isRunning = true
    while (this.#waiting.length > 0) await this.#commit(this.#take())
    this.#isRunning = false
  }

  /** Those that have waited longest, sorted: all gateways lock rows in the same order. */
  #take(): readonly QueuedAttempt[] {
    const batch: QueuedAttempt[] = []
    const left: QueuedAttempt[] = []
    const queued = new Map<string, number>()
    for (const one of this.#waiting) {
      const before = queued.get(one.key) ?? 0
      const fits = batch.length < maxTogether && before < maxOfKey
      if (fits) queued.set(one.key, before + 1)
      ;(fits ? batch : left).push(one)
    }
    this.#waiting = left
    return batch.sort((a, b) => (a.key === b.key ? 0 : a.key < b.key ? -1 : 1))
  }

  async #commit(batch: readonly QueuedAttempt[]): Promise<void> {
    const attempts = batch.map(({ attempt }) => attempt)
    const result = await transact(this.#parts, attempts, true).catch((error: unknown) => ({ error }))
    for (const [n, one] of batch.entries()) {
      const committed = 'error' in result ? undefined : result[n]
      if (committed !== undefined) one.resolve(Promise.resolve(committed))
      // One that cannot be committed must not take the others with it.
      else if (one.attempt.writeId === undefined) this.#singles.add(one)
      else one.resolve(Promise.reject('error' in result ? result.error : undefined))
    }
  }
}

export interface QueuedAttempt extends WriteShare {
  readonly attempt: TransactionAttempt
  resolve(committed: Promise<Committed>): void
}

/**
 * Writes in transactions of their own. They may wait for locks or take long, so a caller that has one under way comes
 * behind the others, and cannot take all places.
 */
export class Singles {
  readonly #parts: CommitParts
  readonly #atOnce: number
  readonly #waiting: QueuedAttempt[] = []
  readonly #running: string[] = []

  constructor(parts: CommitParts, atOnce: number) {
    this.#parts = parts
    this.#atOnce = atOnce
  }

  add(one: QueuedAttempt): void {
    this.#waiting.push(one)
    this.#next()
  }

  #next(): void {
    for (let one = this.#take(); one !== undefined; one = this.#take()) void this.#commit(one)
  }

  #take(): QueuedAttempt | undefined {
    const free = this.#atOnce - this.#running.length
    const first = this.#waiting.findIndex(({ caller }) => !this.#running.includes(caller))
    const least = first < 0 ? 2 : 1
    return free < least ? undefined : this.#waiting.splice(Math.max(first, 0), 1)[0]
  }

  async #commit({ caller, attempt, resolve }: QueuedAttempt): Promise<void> {
    this.#running.push(caller)
    const committed = commit(this.#parts, attempt)
    resolve(committed)
    await committed.catch(() => {})
    this.#running.splice(this.#running.indexOf(caller), 1)
    this.#next()
  }
}
