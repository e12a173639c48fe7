/** A write until it is committed, or known not to be. */
import { asError } from '../../base/as-error.ts'
import { StoreError } from '../store-error.ts'
import { fullQueueState } from './commit-write.ts'
import { type CommitParts, type Committed, type TransactionAttempt, transact } from './transaction.ts'

/**
 * Two transactions were in each other's way, and this one was rolled back: unique_violation, serialization_failure,
 * deadlock_detected, lock_not_available. The next attempt sees what the other one did.
 */
const collisions = new Set(['23505', '40001', '40P01', '55P03'])
const maxAttempts = 4

/** Commits the write in a transaction of its own. */
export async function commit(parts: CommitParts, attempt: TransactionAttempt): Promise<Committed> {
  for (let tries = 1; ; tries++) {
    if (attempt.givenUp) throw new StoreError('given up before it was begun')
    try {
      const [committed] = await transact(parts, [attempt], false)
      if (committed === undefined) throw new Error('cannot happen: nobody shares its transaction')
      return committed
    } catch (error) {
      const code = stateOf(error)
      if (code === fullQueueState) return { value: asError(error).message, awaited: [], wake: undefined }
      if (attempt.writeId !== undefined || tries === maxAttempts || !collisions.has(code)) throw error
    }
  }
}

/** Whether the transaction was committed; if not, it never will be. */
export async function resolveDoubt(
  { connections, clock }: Pick<CommitParts, 'connections' | 'clock'>,
  writeId: string,
): Promise<boolean> {
  return connections.use(async client => {
    // Waits for a COMMIT that is still under way.
    const { rowCount } = await connections.query(
      client,
      `insert into writes (id, at, outcome) values ($1, $2, 'dead') on conflict do nothing`,
      [writeId, clock.now()],
    )
    if (rowCount !== 0) return false
    const { rows } = await connections.query(client, 'select outcome from writes where id = $1', [writeId])
    return rows[0]?.outcome === 'done'
  })
}

/** SQLSTATE of an error of the database. */
export function stateOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : ''
}
