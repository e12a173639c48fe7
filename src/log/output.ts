/**
 * Standard output as a place for log lines that may fail, fill up or stand still. Nothing ever waits for it, except the
 * end of the process, and that for a second at most.
 */
import { constants, fstatSync, openSync, write, writeSync } from 'node:fs'
import { isatty } from 'node:tty'
import { systemClock } from '../runtime/clock.ts'

export interface LogStatus {
  /** Lines that were dropped since the start. */
  readonly dropped: number
  /** Why lines are not written now: the code of an error, or `stalled` when nobody reads. Undefined when they are. */
  readonly problem: string | undefined
}

export interface LogOutputOptions {
  /** Called when lines can no longer be written, at most once a minute. */
  readonly onProblem: (problem: string) => void
  /** Called when lines are written again, with how many were dropped since the last call. */
  readonly onRecovered: (dropped: number) => void
}

/** Bytes that may wait for a reader that is slow or stuck; lines that come then are dropped and counted. */
const maxWaiting = 33_554_432
/** Pause before a write is retried, milliseconds: twice as long each time that a slow reader has read nothing. */
const shortestPauseMs = 1
const longestPauseMs = 32
/** The same after an error, which may pass. */
const errorMs = 1_000
/** A reader that takes nothing for this long counts as stuck, milliseconds. */
const stalledMs = 5_000
const flushMs = 1_000
const noticeMs = 60_000
const lineFeed = 0x0a
/** After these errors the reader never comes back. */
const final = new Set(['EPIPE', 'EBADF', 'ECONNRESET', 'ENOTCONN'])

/** The output on standard output. */
export function openLogOutput(options: LogOutputOptions): LogOutput {
  return new LogOutput(options, openStandardOutput())
}

interface LogDestination {
  readonly fd: number
  /** Whether a write returns at once when the pipe is full. Other writes are made in the thread pool. */
  readonly returns: boolean
}

/** A stuck reader must not stop this thread, nor one of the pool: the end of the process waits for both. */
function openStandardOutput(): LogDestination {
  // Node makes a pipe or socket non-blocking when the stream is first looked at.
  const { fd } = process.stdout
  try {
    const stat = fstatSync(fd)
    if (stat.isFIFO() || stat.isSocket()) return { fd, returns: true }
    if (!isatty(fd)) return { fd, returns: false }
    // A terminal is opened again: the mode of this descriptor is shared with the shell.
    const { O_WRONLY, O_NONBLOCK, O_NOCTTY } = constants
    return { fd: openSync('/proc/self/fd/1', O_WRONLY | O_NONBLOCK | O_NOCTTY), returns: true }
  } catch {
    return { fd, returns: false }
  }
}

class LogOutput {
  readonly #options: LogOutputOptions
  readonly #to: LogDestination
  #queue: Buffer[] = []
  /** Index of the first piece in the queue, how many bytes of it are written, and how many bytes wait in all. */
  #first = 0
  #written = 0
  #waiting = 0
  /** Whether the thread pool is writing the first piece. */
  #inPool = false
  /** Whether a timer will try again, and how long the next pause is. */
  #pausing = false
  #pauseMs = shortestPauseMs
  /** The piece before was given up in the middle of a line. */
  #torn = false
  #problem: string | undefined
  #lastTaken = systemClock.steady()
  #lastNotice = Number.NEGATIVE_INFINITY
  #dropped = 0
  #reportedDrops = 0

  constructor(options: LogOutputOptions, to: LogDestination) {
    this.#options = options
    this.#to = to
    setInterval(() => this.#look(), errorMs).unref()
  }

  /** Takes whole lines. It keeps the bytes until they are written. */
  write(lines: Buffer): void {
    if (this.#isGone() || this.#waiting + lines.length > maxWaiting) {
      this.#dropped += linesIn(lines)
      return
    }
    if (this.#waiting === 0) this.#lastTaken = systemClock.steady()
    if (this.#torn) this.#queue.push(Buffer.from('\n'))
    this.#waiting += this.#torn ? lines.length + 1 : lines.length
    this.#torn = false
    this.#queue.push(lines)
    if (!this.#inPool && !this.#pausing) this.#writeNext()
  }

  /** Writes what waits, for a second at most; the rest is dropped. */
  flush(): void {
    const end = systemClock.steady() + flushMs
    // The end of the process waits for the pool.
    if (this.#inPool) this.#took(this.#piece().length - this.#written)
    while (this.#waiting > 0 && systemClock.steady() < end) {
      const error = this.#tryWrite()
      if (error === 'EAGAIN') sleep(longestPauseMs)
      else if (error !== undefined) break
    }
    this.#dropAll()
  }

  status(): LogStatus {
    return { dropped: this.#dropped, problem: this.#problem }
  }

  #writeNext(): void {
    if (this.#waiting === 0) return
    if (!this.#to.returns) {
      this.#writeInPool()
      return
    }
    let error: string | undefined
    while (this.#waiting > 0 && error === undefined) error = this.#tryWrite()
    if (error !== undefined) this.#failed(error)
  }

  /** The code of the error; undefined when something was written. */
  #tryWrite(): string | undefined {
    try {
      this.#took(writeSync(this.#to.fd, this.#piece(), this.#written))
      return undefined
    } catch (error) {
      return codeOf(error)
    }
  }

  #writeInPool(): void {
    const piece = this.#piece()
    this.#inPool = true
    write(this.#to.fd, piece, this.#written, null, null, (error, count) => {
      this.#inPool = false
      // It may have been flushed meanwhile.
      if (this.#waiting === 0) return
      if (error !== null) {
        this.#failed(codeOf(error))
        return
      }
      this.#took(count)
      this.#writeNext()
    })
  }

  #piece(): Buffer {
    return this.#queue[this.#first]!
  }

  #took(count: number): void {
    this.#lastTaken = systemClock.steady()
    this.#pauseMs = shortestPauseMs
    this.#waiting -= count
    this.#written += count
    if (this.#written < this.#piece().length) return
    this.#written = 0
    this.#first += 1
    if (this.#waiting === 0) this.#emptied()
  }

  #emptied(): void {
    this.#queue = []
    this.#first = 0
    this.#problem = undefined
    const dropped = this.#dropped - this.#reportedDrops
    this.#reportedDrops = this.#dropped
    if (dropped > 0) this.#options.onRecovered(dropped)
  }

  #failed(error: string): void {
    if (error !== 'EAGAIN') this.#note(error)
    if (this.#isGone()) {
      this.#dropAll()
      return
    }
    this.#pausing = true
    const pause = error === 'EAGAIN' ? this.#pauseMs : errorMs
    this.#pauseMs = Math.min(this.#pauseMs * 2, longestPauseMs)
    const again = (): void => {
      this.#pausing = false
      this.#writeNext()
    }
    setTimeout(again, pause).unref()
  }

  #look(): void {
    const isStuck = this.#waiting > 0 && systemClock.steady() - this.#lastTaken > stalledMs
    if (isStuck && this.#problem === undefined) this.#note('stalled')
  }

  #note(problem: string): void {
    this.#problem = problem
    const now = systemClock.steady()
    if (now - this.#lastNotice < noticeMs) return
    this.#lastNotice = now
    this.#options.onProblem(problem)
  }

  #isGone(): boolean {
    return this.#problem !== undefined && final.has(this.#problem)
  }

  #dropAll(): void {
    if (this.#waiting === 0) return
    this.#torn = this.#written > 0
    const rest = this.#queue.slice(this.#first)
    this.#dropped +=
      rest.reduce((sum, piece) => sum + linesIn(piece), 0) - linesIn(this.#piece().subarray(0, this.#written))
    this.#queue = []
    this.#first = 0
    this.#written = 0
    this.#waiting = 0
  }
}

function linesIn(bytes: Buffer): number {
  let count = 0
  for (let at = bytes.indexOf(lineFeed); at >= 0; at = bytes.indexOf(lineFeed, at + 1)) count += 1
  return count
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'unknown'
}

/** Blocks the thread; only while the process ends. */
function sleep(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}
