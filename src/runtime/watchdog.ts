/**
 * Ends the process when its first thread hangs: otherwise agents could not be revoked and signals would be ignored, while
 * the other threads keep forwarding. The thread of the storage watches, since another thread takes 8 MiB; where there is
 * none, with PostgreSQL, a thread is started for it.
 */
import { write } from 'node:fs'
import { extname } from 'node:path'
import { Worker } from 'node:worker_threads'

/** How often the first thread shows that it runs, milliseconds. */
const beatMs = 1_000
/** Looks without a beat until the process is killed. Long work, such as a reload of many policies, takes less. */
const maxSilent = 30
/** How long the message may take, milliseconds: standard error may be stuck as well. */
const messageMs = 1_000

/** What the watched and the watching thread share. */
export interface ThreadWatch {
  /** Counts up while the first thread runs; 0 until it is to be watched. */
  readonly beats: Int32Array
  /** Looks without a beat until the process is killed. */
  readonly silent: number
}

export function createWatch(silent = maxSilent): ThreadWatch {
  return { beats: new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT)), silent }
}

/** From now on the thread that calls this is watched. */
export function beginBeats({ beats }: ThreadWatch): void {
  Atomics.add(beats, 0, 1)
  setInterval(() => Atomics.add(beats, 0, 1), beatMs).unref()
}

/** Looks after the first thread from the thread that calls this. */
export function watchFirstThread({ beats, silent }: ThreadWatch): void {
  let lastBeats = 0
  let missed = 0
  // Looks are counted instead of time: a process that was stopped for a while does not hang.
  const timer = setInterval(() => {
    const beat = Atomics.load(beats, 0)
    missed = beat === lastBeats && beat !== 0 ? missed + 1 : 0
    lastBeats = beat
    if (missed < silent) return
    clearInterval(timer)
    const kill = () => void process.kill(process.pid, 'SIGKILL')
    setTimeout(kill, messageMs)
    write(2, 'agent-gateway: the first thread does not respond; the process is killed\n', kill)
  }, beatMs)
}

/** Watches the first thread from a new one. `onError` is called when the watch itself fails. */
export function watchInThread(watch: ThreadWatch, onError: (error: unknown) => void): void {
  // tsc rewrites the extension in imports but not in URLs.
  const file = new URL(`./watchdog-thread${extname(import.meta.url)}`, import.meta.url)
  new Worker(file, { name: 'watchdog', workerData: watch }).once('error', onError).unref()
}
