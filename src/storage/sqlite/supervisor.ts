import { resolve } from 'node:path'
import { inTime } from '../../runtime/clock.ts'
import { StoreError } from '../store.ts'
import { startThread, type Thread, type ThreadOptions } from './thread.ts'

export interface Supervisor extends Pick<Thread, 'call' | 'subscribe' | 'close'> {
  readonly closed: boolean
  /** @throws StartupError when the database cannot be opened */
  start(): Promise<Thread>
}

/** Keeps a storage thread running: one that dies is started again by the next call. */
export function superviseThread(given: ThreadOptions): Supervisor {
  let options = { ...given, directory: resolve(given.directory) }
  let thread: Thread | undefined
  let starting: Promise<Thread> | undefined
  let closed = false

  async function start(): Promise<Thread> {
    const started = await startThread(options)
    thread = started
    void started.ended.then(() => {
      thread = undefined
    })
    return started
  }

  function restart(): Promise<Thread> {
    starting ??= start().finally(() => {
      starting = undefined
    })
    const late = () => Promise.reject(new Error('The storage does not start'))
    // A call waits for the thread as long as for its answer.
    return inTime(starting, options.callMs, late).catch(error => {
      throw new StoreError(error.message, { cause: error })
    })
  }

  return {
    start,
    get closed() {
      return closed
    },
    call(asked, onReply) {
      if (closed) return Promise.reject(new StoreError('The store is closed'))
      // No wait while the thread runs: calls reach it in the order they were made, `close` after them.
      return thread?.call(asked, onReply) ?? restart().then(running => running.call(asked, onReply))
    },
    /** Also of a thread that is started later. */
    async subscribe(subscriptions) {
      options = { ...options, subscriptions }
      const running = thread ?? (await starting)
      await running?.subscribe(subscriptions)
    },
    async close() {
      closed = true
      await starting?.catch(() => undefined)
      await thread?.close()
    },
  }
}
