import type { Registry } from '../agents/registry.ts'
import type { PolicyBook } from '../policies/book.ts'
import type { Store } from '../storage/store.ts'

export interface ResyncParts {
  readonly store: Pick<Store, 'doubts'>
  readonly registry: Pick<Registry, 'reload'>
  readonly book: Pick<PolicyBook, 'restore'>
  readonly report: (what: string, error: unknown) => void
}

/**
 * Reads agents and policies again after a write whose caller could not be told whether it was kept: a revocation that
 * was answered with 503 and is in the store holds from then on. Call the result every second or so.
 */
export function createResync({ store, registry, book, report }: ResyncParts): () => Promise<void> {
  let settled = 0
  let running = false
  return async () => {
    const doubts = store.doubts()
    if (running || doubts === settled) return
    running = true
    try {
      await registry.reload()
      await book.restore()
      settled = doubts
    } catch (error) {
      report('agents and policies could not be read again after a write in doubt', error)
    } finally {
      running = false
    }
  }
}
