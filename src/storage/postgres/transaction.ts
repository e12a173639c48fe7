/**
 * One transaction for a write, or for several. The statements lock rows; what was noted goes out last, together with
 * COMMIT, so that the lock which all gateways share is never held across the network.
 */

import { randomUUID } from 'node:crypto'
import type { PoolClient } from 'pg'
import type { WebhookSubscription } from '../deliveries.ts'
import { isAwaited } from '../feed.ts'
import { run, type StoreOperation } from '../operations.ts'
import type { CallerKind } from '../store.ts'
import { StoreError } from '../store-error.ts'
import type { WriteNotes } from '../unit.ts'
import { argumentsOf, callCommitWrite, type Written } from './commit-write.ts'
import { cutOff, takeNotice } from './connection.ts'
import type { StoreHistory } from './history.ts'
import type { LossParts } from './loss.ts'
import { type NoteQuery, SharedNotes, type Together } from './shared-notes.ts'
import type { Wake } from './turns.ts'
import type { WriteShare } from './write-share.ts'

export interface Committed {
  readonly value: unknown
  /** Numbers of the changes that must be in force when it is answered. */
  readonly awaited: readonly number[]
  /** Why gateways are to be woken; undefined when it changed nothing that is followed. */
  readonly wake: Wake | undefined
}

/** One call: whether it was given up, and whether its COMMIT has left. */
export interface TransactionAttempt {
  readonly asked: StoreOperation
  readonly of: CallerKind
  readonly share: WriteShare | undefined
  /** Ends the connection that it waits for, unless another one waits too. Set while it has one. */
  stop: (() => void) | undefined
  /** Set while a COMMIT is under way without an answer, with the result of the operation. */
  writeId: string | undefined
  value?: unknown
  givenUp: boolean
}

export interface CommitParts extends LossParts {
  /** Hooks for which events are left in the store. */
  subscriptions: readonly WebhookSubscription[]
  readonly gateway: string
}

/** An attempt and what its operation has noted. */
interface Part {
  readonly attempt: TransactionAttempt
  readonly notes: SharedNotes
}

/**
 * Runs the operations at the same time. Either all are committed, but for those that must have a transaction of their own
 * (undefined), or none.
 *
 * @param isBatch whether none may wait for the locks of others
 */
export async function transact(
  { connections, clock, history, subscriptions, gateway }: CommitParts,
  given: readonly TransactionAttempt[],
  isBatch: boolean,
): Promise<readonly (Committed | undefined)[]> {
  const client = await connections.acquire(given[0]?.of)
  const attempts = given.filter(({ givenUp }) => !givenUp)
  function stop(): void {
    if (attempts.every(({ givenUp }) => givenUp)) cutOff(client)
  }
  for (const attempt of attempts) attempt.stop = stop
  let broken = attempts.length > 0
  try {
    if (attempts.length === 0) throw new StoreError(givenUp)
    takeNotice(client)
    const query: NoteQuery = (text, values) => connections.query(client, text, values)
    const all = partsOf(attempts, { db: connections.over(client), query, subscriptions, gateway, isBatch })
    all[0]?.notes.send(query('begin'))
    try {
      const parts = await runAll(all)
      assertWanted(attempts)
      const last = parts.length === 0 ? null : await finish(query, { client, parts, now: clock.now(), history })
      if (parts.length === 0) await query('rollback')
      broken = false
      return committedOf(given, parts, last)
    } catch (error) {
      if (attempts.every(({ writeId }) => writeId === undefined)) {
        await query('rollback')
        broken = false
      }
      throw error
    }
  } finally {
    for (const attempt of attempts) attempt.stop = undefined
    connections.giveBack(client, broken)
  }
}

interface Transaction extends Omit<Together, 'taken' | 'all'> {
  readonly isBatch: boolean
}

function partsOf(attempts: readonly TransactionAttempt[], { isBatch, ...rest }: Transaction): readonly Part[] {
  const all: SharedNotes[] = []
  const together = { ...rest, taken: isBatch ? new Map<string, string>() : undefined, all }
  return attempts.map(attempt => {
    const notes = new SharedNotes(together, attempt.share?.key ?? '')
    all.push(notes)
    return { attempt, notes }
  })
}

/** The parts that can be committed. Operations with one key run one after the other: each sees what those before it did. */
async function runAll(given: readonly Part[]): Promise<readonly Part[]> {
  const queues = Map.groupBy(given, ({ attempt }) => attempt.share?.key)
  const results = await Promise.allSettled([...queues.values()].map(runQueue))
  const failed = results.find(({ status }) => status === 'rejected')
  if (failed?.status === 'rejected') throw await causeOf(failed.reason, given)
  return given.filter(({ notes }) => !notes.isLeftOut)
}

async function runQueue(queue: readonly Part[]): Promise<void> {
  for (const { attempt, notes } of queue) {
    try {
      attempt.value = await run(notes, attempt.asked)
    } catch (error) {
      if (!notes.isLeftOut) throw error
    }
  }
}

interface TransactionEnd {
  readonly client: PoolClient
  readonly parts: readonly Part[]
  readonly now: number
  readonly history: StoreHistory
}

/** Writes what was noted and commits, in one flush. Number of the last change; null when there is none. */
async function finish(query: NoteQuery, { client, parts, now, history }: TransactionEnd): Promise<number | null> {
  const { epoch } = history
  const id = randomUUID()
  const all = parts.map(({ notes }) => notes)
  for (const { attempt } of parts) attempt.writeId = id
  const written = query(callCommitWrite, argumentsOf({ id, now, all, history }))
  const committed = query('commit')
  const [write, end] = await Promise.allSettled([written, committed])
  if (end.status === 'rejected') throw end.reason
  const notice = takeNotice(client)
  // A commit that was cancelled while it waited for a standby says so in a notice, and succeeds.
  if (notice !== undefined) throw new StoreError(`COMMIT: ${notice}`, { inDoubt: true })
  // Answered: nothing is in doubt any more. After an error in the transaction the server answers COMMIT with ROLLBACK.
  for (const { attempt } of parts) attempt.writeId = undefined
  if (write.status === 'rejected') throw await causeOf(write.reason, parts)
  if (end.value.command !== 'COMMIT') throw new StoreError('the transaction was rolled back')
  // The one row of the function.
  const { last, trail_seq: seq, trail_hash: hash } = write.value.rows[0] as Written
  history.saw(epoch, seq === null || hash === null ? null : { seq, hash })
  return last
}

/** @param last number of the last change of all of them; they are numbered in the order of the parts */
function committedOf(attempts: readonly TransactionAttempt[], parts: readonly Part[], last: number | null) {
  const done = new Map<TransactionAttempt, Committed>()
  let next = (last ?? 0) - parts.reduce((sum, { notes }) => sum + notes.changes.length, 0) + 1
  for (const { attempt, notes } of parts) {
    done.set(attempt, { value: attempt.value, ...followed(notes, next) })
    next += notes.changes.length
  }
  return attempts.map(attempt => done.get(attempt))
}

/** @param first number of the first change */
function followed({ changes }: WriteNotes, first: number): Pick<Committed, 'awaited' | 'wake'> {
  if (changes.length === 0) return { awaited: [], wake: undefined }
  const awaited = changes.flatMap((change, index) => (isAwaited(change) ? [first + index] : []))
  return { awaited, wake: awaited.length > 0 ? 'changes' : 'events' }
}

/** Why a transaction failed: the statements behind the one that did say only that one failed. */
async function causeOf(error: unknown, parts: readonly Part[]): Promise<unknown> {
  const results = await Promise.allSettled(parts.flatMap(({ notes }) => notes.sent))
  const failed = results.find(({ status }) => status === 'rejected')
  return failed?.status === 'rejected' ? failed.reason : error
}

const givenUp = 'given up before it was committed'

function assertWanted(attempts: readonly TransactionAttempt[]): void {
  if (attempts.some(attempt => attempt.givenUp)) throw new StoreError(givenUp)
}
