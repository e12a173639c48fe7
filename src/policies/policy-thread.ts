import { extname } from 'node:path'
import { Worker } from 'node:worker_threads'
import { type Refusal, refuse } from '../base/refusals.ts'
import { type Link, openLink } from '../runtime/link.ts'
import { createSerialQueue } from '../runtime/serial-queue.ts'
import type { PolicyWork } from './policy-worker.ts'

/** Long work on policies, one piece after the other in a thread of its own. */
export interface PolicyThread {
  /**
   * Rejects when the thread dies.
   *
   * @param left aborts when nobody waits for the result any more: then the work ends, or never begins
   */
  run<T>(work: (calls: Link<PolicyWork>) => Promise<T>, left: AbortSignal): Promise<T | Refusal>
  close(): Promise<unknown>
}

/** Pieces that may wait. */
const maxWaiting = 8
/** An idle thread gives its memory back, some 30 MiB. */
const idleMs = 20_000

/** Nobody reads it. */
const abandoned = refuse('busy', 'The caller left.')

// Only the extension differs between sources and the built package.
const workerUrl = new URL(`./policy-worker${extname(import.meta.url)}`, import.meta.url)

/** @param longestMs longest time of one piece, milliseconds */
export function createPolicyThread(onCrash: (error: Error) => void, longestMs = 60_000): PolicyThread {
  const thread = new WorkerOnDemand(onCrash, longestMs)
  let waiting = 0
  const inTurn = createSerialQueue()
  return {
    async run(work, left) {
      if (waiting >= maxWaiting) return refuse('busy', 'Others wait for work on policies. Try again later.')
      waiting += 1
      return await inTurn(() => thread.once(work, left)).finally(() => {
        waiting -= 1
      })
    },
    close: () => thread.close(),
  }
}

/** A thread that ends when it is idle, and when a piece of work takes too long or nobody waits for it. */
class WorkerOnDemand {
  readonly #onCrash: (error: Error) => void
  readonly #longestMs: number
  #worker: Worker | undefined
  #calls: Link<PolicyWork> | undefined
  #idle: NodeJS.Timeout | undefined
  #isClosed = false

  constructor(onCrash: (error: Error) => void, longestMs: number) {
    this.#onCrash = onCrash
    this.#longestMs = longestMs
  }

  /** One piece of work. */
  async once<T>(work: (calls: Link<PolicyWork>) => Promise<T>, left: AbortSignal): Promise<T | Refusal> {
    if (this.#isClosed) return refuse('draining')
    if (left.aborted) return abandoned
    clearTimeout(this.#idle)
    this.#calls ??= this.#start()
    let isLate = false
    const limit = setTimeout(() => {
      isLate = true
      void this.#end()
    }, this.#longestMs)
    const leave = () => void this.#end()
    left.addEventListener('abort', leave)
    try {
      return await work(this.#calls)
    } catch (error) {
      if (left.aborted) return abandoned
      if (isLate) return refuse('busy', 'This took more than a minute. Ask for less.')
      throw error
    } finally {
      left.removeEventListener('abort', leave)
      clearTimeout(limit)
      this.#idle = setTimeout(() => this.#end(), idleMs).unref()
    }
  }

  close(): Promise<unknown> {
    this.#isClosed = true
    clearTimeout(this.#idle)
    return this.#end()
  }

  #start(): Link<PolicyWork> {
    const started = new Worker(workerUrl, { name: 'policies' })
    started.on('error', this.#onCrash)
    started.on('exit', () => {
      if (this.#worker === started) this.#worker = this.#calls = undefined
    })
    this.#worker = started
    return openLink<object, PolicyWork>(started, {}, { unrefIdle: true })
  }

  #end(): Promise<unknown> {
    const ending = this.#worker?.terminate()
    this.#worker = this.#calls = undefined
    return ending ?? Promise.resolve()
  }
}
