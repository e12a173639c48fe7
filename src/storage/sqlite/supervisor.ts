import { resolve } from 'node:path'
import { inTime } from '../../runtime/clock.ts'
import { StoreError } from '../store.ts'
import { startThread, type Thread, type ThreadOptions } from './thread.ts'

/** Keeps a storage thread running: one that dies is started again by the next call. */
export class Supervisor {
  #options: ThreadOptions
  #thread: Thread | undefined
  #starting: Promise<Thread> | undefined
  #closed = false

  constructor(options: ThreadOptions) {
    this.#options = { ...options, directory: resolve(options.directory) }
  }

  get closed(): boolean {
    return this.#closed
  }

  /** @throws StartupError when the database cannot be opened */
  async start(): Promise<Thread> {
    const started = await startThread(this.#options)
    this.#thread = started
    void started.ended.then(() => {
      this.#thread = undefined
    })
    return started
  }

  call: Thread['call'] = (asked, onReply) => {
    if (this.#closed) return Promise.reject(new StoreError('The store is closed'))
    // No wait while the thread runs: calls reach it in the order they were made, `close` after them.
    return this.#thread?.call(asked, onReply) ?? this.#restart().then(running => running.call(asked, onReply))
  }

  /** Also of a thread that is started later. */
  async subscribe(subscriptions: ThreadOptions['subscriptions']): Promise<void> {
    this.#options = { ...this.#options, subscriptions }
    const running = this.#thread ?? (await this.#starting)
    await running?.subscribe(subscriptions)
  }

  async close(): Promise<void> {
    this.#closed = true
    await this.#starting?.catch(() => undefined)
    await this.#thread?.close()
  }

  async #restart(): Promise<Thread> {
    this.#starting ??= this.start().finally(() => {
      this.#starting = undefined
    })
    // A call waits for the thread as long as for its answer.
    return inTime(this.#starting, this.#options.callMs, () =>
      Promise.reject(new Error('The storage does not start')),
    ).catch(error => {
      throw new StoreError(error.message, { cause: error })
    })
  }
}
