/**
 * Ends the process when its first thread hangs: otherwise agents could not be revoked and signals would be ignored, while
 * the other threads keep forwarding.
 */
import { write } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { isMainThread, Worker, workerData } from 'node:worker_threads'

/** How often the first thread shows that it runs, milliseconds. */
const beatMs = 1_000
/** Looks without a beat until the process is killed. Long work, such as a reload of many policies, takes less. */
const mostSilent = 30
/** How long the message may take, milliseconds: standard error may be stuck as well. */
const messageMs = 1_000

/** Watches the first thread, which calls this. `onError` hears that the watch itself has failed. */
export function watchFirstThread(onError: (error: unknown) => void, silent = mostSilent): void {
  const beats = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT))
  const watchdog = new Worker(fileURLToPath(import.meta.url), { name: 'watchdog', workerData: { beats, silent } })
  watchdog.once('error', onError).unref()
  setInterval(() => Atomics.add(beats, 0, 1), beatMs).unref()
}

interface Watch {
  readonly beats: Int32Array
  readonly silent: number
}

function watch({ beats, silent }: Watch): void {
  let seen = -1
  let missed = 0
  // Looks are counted instead of time: a process that was stopped for a while does not hang.
  const timer = setInterval(() => {
    const beat = Atomics.load(beats, 0)
    missed = beat === seen ? missed + 1 : 0
    seen = beat
    if (missed < silent) return
    clearInterval(timer)
    const kill = () => void process.kill(process.pid, 'SIGKILL')
    setTimeout(kill, messageMs)
    write(2, 'agent-gateway: the first thread does not respond; the process is killed\n', kill)
  }, beatMs)
}

if (!isMainThread) watch(workerData)
