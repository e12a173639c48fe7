import { inTime } from '../clock.ts'
import { StoreError } from '../storage/store.ts'

/** Runs work in order per key; one failure does not stop the next. */
export interface Queues {
  /** Rejects with StoreError when its turn does not come in time; it is not done then. */
  run<T>(key: string, work: () => Promise<T>): Promise<T>
  /** Resolves when nothing is under way. */
  idle(): Promise<void>
}

/** Longest wait for a turn, milliseconds: the caller is answered within two seconds even if earlier work hangs. */
const turnMs = 1_000

export function createQueues(): Queues {
  const tails = new Map<string, Promise<unknown>>()
  return {
    run(key, work) {
      const before = tails.get(key)
      const result = inTurn(before, work)
      // Work whose turn did not come ends before the work that it waited for.
      const tail = Promise.allSettled([before, result]).then(() => {
        if (tails.get(key) === tail) tails.delete(key)
      })
      tails.set(key, tail)
      return result
    },
    async idle() {
      while (tails.size > 0) await Promise.all(tails.values())
    },
  }
}

async function inTurn<T>(before: Promise<unknown> | undefined, work: () => Promise<T>): Promise<T> {
  if (before === undefined) return work()
  await inTime<unknown>(before, turnMs, () => {
    throw new StoreError('Another change of the same agent takes too long; it was not begun')
  })
  return work()
}
