import type { Worker } from 'node:worker_threads'
import type { Log } from '../log/log.ts'
import { inTime } from '../runtime/clock.ts'
import type { Link } from '../runtime/link.ts'
import type { ThreadCalls } from './protocol.ts'

/** Longest wait for a terminated thread, milliseconds. Some system calls cannot be interrupted. */
const endMs = 1_000

export interface MemberParts {
  readonly thread: number
  readonly worker: Worker
  readonly link: Link<ThreadCalls>
  /** One number that the thread reads before it sends a request. With 1 it sends none. */
  readonly fence: Int32Array
  readonly log: Log
  /** Called once, when the thread has ended or was given up. */
  readonly onEnd: () => void
}

export class PoolThread {
  readonly link: Link<ThreadCalls>
  /** Whether it takes connections, or is about to. */
  listens = false
  /** The thread was terminated and has not ended. It sends nothing more, but the process cannot exit by itself. */
  stuck = false
  readonly #parts: MemberParts
  #ending: Promise<void> | undefined
  #isOver = false
  /** Rounds without an answer. */
  #silent = 0
  #isAsked = false

  constructor(parts: MemberParts) {
    this.#parts = parts
    this.link = parts.link
    parts.worker.once('exit', () => {
      if (this.stuck) parts.log.warn({}, `thread ${parts.thread} has ended late: no restart is needed`)
      this.stuck = false
      this.#over()
    })
  }

  /** Checks whether it responds. Returns the number of rounds without an answer before this one. */
  ask(): number {
    if (this.#isAsked) {
      this.#silent += 1
      return this.#silent
    }
    this.#isAsked = true
    const onPong = () => {
      this.#isAsked = false
      this.#silent = 0
    }
    this.link.call('ping', []).then(onPong, () => {})
    return 0
  }

  /** Ends the thread at once. Resolves soon in any state; then the thread sends nothing more. */
  end(): Promise<void> {
    this.#ending ??= this.#endNow()
    return this.#ending
  }

  async #endNow(): Promise<void> {
    const { worker, fence, thread, log } = this.#parts
    Atomics.store(fence, 0, 1)
    const isOver = worker.terminate().then(() => true)
    if (await inTime(isOver, endMs, () => false)) return
    this.stuck = true
    worker.unref()
    log.error({}, `thread ${thread} hangs in the system and cannot be ended; restart the gateway when you can`)
    this.#over()
  }

  #over(): void {
    if (this.#isOver) return
    this.#isOver = true
    Atomics.store(this.#parts.fence, 0, 1)
    this.link.end()
    this.#parts.onEnd()
  }
}
