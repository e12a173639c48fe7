/**
 * Runs inside the gateway (`--import`), and writes its stalls to a file in its working directory. A timer tells
 * how long the event loop stood still. The scheduler tells how much of that time the thread was ready and had no core: on
 * a busy machine that is most of it, and no work of the gateway.
 */
import { appendFileSync, readFileSync } from 'node:fs'
import { isMainThread } from 'node:worker_threads'
import { type Stall, stallsFile } from './stall.ts'

/** Stalls look shorter by this at most, milliseconds. */
const intervalMs = 2
/** Shorter ones are not written, milliseconds. */
const shortestMs = 4

if (isMainThread) watch()

function watch(): void {
  let from = performance.now()
  let before = schedule()
  const look = () => {
    const now = schedule()
    const ranMs = now.ranMs - before.ranMs
    const waitedMs = now.waitedMs - before.waitedMs
    const ms = performance.now() - from - intervalMs
    const stall: Stall = { at: Date.now(), ms, ranMs, waitedMs }
    if (ms >= shortestMs) appendFileSync(stallsFile, `${JSON.stringify(stall)}\n`)
    from = performance.now()
    before = now
  }
  setInterval(look, intervalMs).unref()
}

/** Time for which this thread ran, and for which it was ready and something else had the core (schedstat). */
function schedule(): Pick<Stall, 'ranMs' | 'waitedMs'> {
  const [ran, waited] = readFileSync('/proc/thread-self/schedstat', 'latin1').split(' ')
  return { ranMs: Number(ran) / 1e6, waitedMs: Number(waited) / 1e6 }
}
