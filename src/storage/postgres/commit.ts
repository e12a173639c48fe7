/**
 * One transaction for each write. Its statements lock rows; what it has noted goes out last, together with COMMIT, so that
 * the lock which all gateways share is never held across the network.
 */
import { randomUUID } from 'node:crypto'
import type { PoolClient } from 'pg'
import { asError } from '../../base/as-error.ts'
import type { Clock } from '../../clock.ts'
import { bindable } from '../chain.ts'
import { isAwaited } from '../feed.ts'
import { type Asked, run } from '../operations.ts'
import { StoreError } from '../store-error.ts'
import { Notes } from '../unit.ts'
import { argumentsOf, callCommitWrite, fullQueueState, schemaLock, type Written } from './commit-write.ts'
import { type Connections, takeNotice } from './connection.ts'
import type { History } from './history.ts'
import type { Wake } from './turns.ts'

/**
 * Two transactions were in each other's way, and this one was rolled back: unique_violation, serialization_failure,
 * deadlock_detected, lock_not_available. The next attempt sees what the other one did.
 */
const collisions = new Set(['23505', '40001', '40P01', '55P03'])
const mostAttempts = 4

/** A unit of work beside those of other connections and gateways. */
class SharedNotes extends Notes {
  readonly #query: Query

  constructor(db: Notes['db'], query: Query) {
    super(db)
    this.#query = query
  }

  /** The next statement begins, and sees the tables, when the locks are held. */
  override alone(...keys: readonly string[]): undefined {
    this.send(this.#query(lockKeys, [keys.map(bindable)]))
  }
}

/** In the order of the locks, so that nobody waits for each other. */
const lockKeys = `select pg_advisory_xact_lock(lock) from (
  select distinct hashtextextended(key, ${schemaLock}) as lock from unnest($1::text[]) as k(key) order by lock) as locks`

export interface Committed {
  readonly value: unknown
  /** Numbers of the changes that must be in force when it is answered. */
  readonly awaited: readonly number[]
  /** Why gateways are to be woken; undefined when it changed nothing that is followed. */
  readonly wake: Wake | undefined
}

/** One call: whether it was given up, and whether its COMMIT has left. */
export interface Attempt {
  client: PoolClient | undefined
  /** Set while a COMMIT is under way without an answer, with the result of the operation. */
  writeId: string | undefined
  value?: unknown
  givenUp: boolean
}

export interface CommitParts {
  readonly connections: Connections
  readonly clock: Clock
  readonly history: History
}

/** Runs a write until it is committed, or known not to be. */
export async function commit(parts: CommitParts, asked: Asked, attempt: Attempt): Promise<Committed> {
  for (let tries = 1; ; tries++) {
    try {
      return await commitOnce(parts, asked, attempt)
    } catch (error) {
      if (attempt.writeId !== undefined || tries === mostAttempts || !collisions.has(stateOf(error))) throw error
    }
  }
}

async function commitOnce(
  { connections, clock, history }: CommitParts,
  asked: Asked,
  attempt: Attempt,
): Promise<Committed> {
  const client = await connections.acquire()
  attempt.client = client
  let broken = true
  try {
    assertWanted(attempt)
    takeNotice(client)
    const query = (text: string, values: readonly unknown[] = []) => connections.query(client, text, values)
    const notes = new SharedNotes(connections.over(client), query)
    notes.send(query('begin'))
    try {
      const value = await run(notes, asked).catch(async error => Promise.reject(await causeOf(error, notes)))
      assertWanted(attempt)
      attempt.value = value
      const last = await finish(query, { client, attempt, notes, now: clock.now(), history })
      broken = false
      return { value, ...followed(notes, last) }
    } catch (error) {
      const full = stateOf(error) === fullQueueState ? asError(error).message : undefined
      if (attempt.writeId === undefined) {
        await query('rollback')
        broken = false
      }
      if (full === undefined) throw error
      return { value: full, awaited: [], wake: undefined }
    }
  } finally {
    attempt.client = undefined
    client.release(broken)
  }
}

/** @param last number of the last change */
function followed({ changes }: Notes, last: number | null): Pick<Committed, 'awaited' | 'wake'> {
  if (last === null) return { awaited: [], wake: undefined }
  const first = last - changes.length + 1
  const awaited = changes.flatMap((change, index) => (isAwaited(change) ? [first + index] : []))
  return { awaited, wake: awaited.length > 0 ? 'changes' : 'events' }
}

type Query = (
  text: string,
  values?: readonly unknown[],
) => Promise<{ readonly command: string; readonly rows: unknown[] }>

interface Ending {
  readonly client: PoolClient
  readonly attempt: Attempt
  readonly notes: Notes
  readonly now: number
  readonly history: History
}

/** Writes what was noted and commits, in one flush. Number of the last change. */
async function finish(query: Query, ending: Ending): Promise<number | null> {
  const { client, attempt, history } = ending
  const { epoch } = history
  const id = randomUUID()
  attempt.writeId = id
  const written = query(callCommitWrite, argumentsOf({ id, ...ending }))
  const committed = query('commit')
  const [write, end] = await Promise.allSettled([written, committed])
  if (end.status === 'rejected') throw end.reason
  const notice = takeNotice(client)
  // A commit that was cancelled while it waited for a standby says so in a notice, and succeeds.
  if (notice !== undefined) throw new StoreError(`COMMIT: ${notice}`, { inDoubt: true })
  // Answered: nothing is in doubt any more. After an error in the transaction the server answers COMMIT with ROLLBACK.
  attempt.writeId = undefined
  if (write.status === 'rejected') throw await causeOf(write.reason, ending.notes)
  if (end.value.command !== 'COMMIT') throw new StoreError('the transaction was rolled back')
  // The one row of the function.
  const { last, trail_seq: seq, trail_hash: hash } = write.value.rows[0] as Written
  history.saw(epoch, seq === null || hash === null ? null : { seq, hash })
  return last
}

/** Why a transaction failed: the statements behind the one that did say only that one failed. */
async function causeOf(error: unknown, { sent }: Notes): Promise<unknown> {
  const failed = (await Promise.allSettled(sent)).find(({ status }) => status === 'rejected')
  return failed?.status === 'rejected' ? failed.reason : error
}

function assertWanted({ givenUp }: Attempt): void {
  if (givenUp) throw new StoreError('given up before it was committed')
}

/** Whether the transaction was committed; if not, it never will be. */
export async function resolveDoubt(
  { connections, clock }: Omit<CommitParts, 'history'>,
  writeId: string,
): Promise<boolean> {
  const client = await connections.acquire()
  let broken = true
  try {
    // Waits for a COMMIT that is still under way.
    const { rowCount } = await connections.query(
      client,
      `insert into writes (id, at, outcome) values ($1, $2, 'dead') on conflict do nothing`,
      [writeId, clock.now()],
    )
    if (rowCount !== 0) {
      broken = false
      return false
    }
    const { rows } = await connections.query(client, 'select outcome from writes where id = $1', [writeId])
    broken = false
    return rows[0]?.outcome === 'done'
  } finally {
    client.release(broken)
  }
}

/** SQLSTATE of an error of the database. */
export function stateOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : ''
}
