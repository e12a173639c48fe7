/** The main thread's end of the storage thread. */
import { extname } from 'node:path'
import { Worker } from 'node:worker_threads'
import { StartupError } from '../../base/refusals.ts'
import { inTime } from '../../runtime/clock.ts'
import { type Failure, type Link, openLink } from '../../runtime/link.ts'
import { isWrite } from '../methods.ts'
import type { StoreOperation } from '../operations.ts'
import { StoreError } from '../store.ts'
import { CallClaims, createClaimMemory } from './claims.ts'
import type { Done, StorageCalls, StorageNews, WorkerOptions } from './protocol.ts'

/** One life of a storage thread. */
export interface Thread {
  /**
   * @param onReply gets the reply in the order of the commits, also when the call was given up before
   * @throws StoreError when the call failed, took too long, or the thread ended before it was answered
   */
  call(asked: StoreOperation, onReply: (done: Done) => void): Promise<unknown>
  subscribe: StorageCalls['subscribe']
  /** Resolves once all calls before are answered and the file is closed, or when that takes too long. */
  close(): Promise<void>
  /** Resolves when the thread has ended, whatever the cause. */
  readonly ended: Promise<void>
}

export interface ThreadOptions extends Omit<WorkerOptions, 'claims'> {
  /** Longest time of a call, milliseconds. */
  readonly callMs: number
  /** Called when the thread has ended before it replied to a write, which may have been kept. */
  readonly onLost: () => void
  /** Called with the reason why nothing more is written until a restart. */
  readonly onFault: (why: string) => void
  /** Called with what was done because an older database was brought back. */
  readonly onRestored: (what: string) => void
}

/** Longest wait for the end of a thread, milliseconds. */
const closeMs = 2_000

/** @throws StartupError when the database cannot be opened */
export async function startThread({ callMs, onLost, onFault, onRestored, ...options }: ThreadOptions): Promise<Thread> {
  // tsc rewrites the extension in imports but not in URLs.
  const file = new URL(`./worker${extname(import.meta.url)}`, import.meta.url)
  const memory = createClaimMemory()
  const workerData: WorkerOptions = { ...options, claims: memory }
  const worker = new Worker(file, { workerData, name: 'storage' })
  let cause: unknown
  worker.once('error', error => {
    cause = error
  })
  const ended = new Promise<void>(resolve => {
    worker.once('exit', () => resolve())
  })
  // An idle store does not keep the process running.
  const link = openLink<StorageNews, StorageCalls>(
    worker,
    { fault: onFault },
    { errorOf: failure => errorOf(failure, cause), unrefIdle: true },
  )
  try {
    const restored = await link.call('open', [])
    if (restored !== undefined) onRestored(restored)
  } catch (error) {
    await worker.terminate()
    throw error
  }
  return {
    call: createCalls({ link, claims: new CallClaims(memory), callMs, onLost }),
    subscribe: hooks => link.call('subscribe', [hooks]),
    async close() {
      const closed = link.call('close', []).then(() => worker.terminate())
      await inTime(closed, closeMs, () => 0).catch(() => {})
    },
    ended,
  }
}

interface SqliteCallParts extends Pick<ThreadOptions, 'callMs' | 'onLost'> {
  readonly link: Pick<Link<StorageCalls>, 'call'>
  readonly claims: CallClaims
}

/** Sends calls to the thread, each with a limit of time. */
export function createCalls({ link, claims, callMs, onLost }: SqliteCallParts): Thread['call'] {
  function giveUp(id: number, name: string, isWriting: boolean): never {
    const isUndone = claims.giveUp(id)
    const outcome = isUndone ? 'it was not done' : 'whether it was done is unknown'
    throw new StoreError(`${name} took too long; ${outcome}`, { inDoubt: !isUndone && isWriting })
  }

  async function receive(id: number, answer: Promise<Done>, onReply: (done: Done) => void, isWriting: boolean) {
    try {
      const done = await answer
      onReply(done)
      return done.value
    } catch (error) {
      if (error instanceof StoreError && error.inDoubt && isWriting) onLost()
      throw error
    } finally {
      claims.free(id)
    }
  }

  // What waits for the answer must not keep the arguments: a held request would stay in memory until it is on the disk.
  return (asked, onReply) => {
    const id = claims.open()
    if (id === undefined) return Promise.reject(new StoreError('Too many calls wait for the storage'))
    const name = `${asked.table}.${asked.method}`
    const isWriting = isWrite(asked)
    const answer = link.call('run', [{ ...asked, id }])
    return inTime(receive(id, answer, onReply, isWriting), callMs, () => giveUp(id, name, isWriting))
  }
}

function errorOf(failure: Failure | undefined, cause: unknown): Error {
  if (failure?.name === 'StartupError') return new StartupError(failure.message)
  if (failure !== undefined) return new StoreError(failure.message)
  const message = 'The storage thread ended; whether the last calls were kept is unknown'
  return new StoreError(message, { cause, inDoubt: true })
}
