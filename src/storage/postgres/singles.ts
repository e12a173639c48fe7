import { commit } from './commit.ts'
import type { CommitParts, Committed, TransactionAttempt } from './transaction.ts'
import type { WriteShare } from './write-share.ts'

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
