import { monitorEventLoopDelay } from 'node:perf_hooks'
import { loopDelay, loopDelayMax } from './layout.ts'
import type { Metrics } from './metrics.ts'

/** How often the loop is looked at, milliseconds: seldom enough to cost nothing. */
const resolution = 20
/** Shows the worst delay of the last minute at most, so that scrapes at usual intervals miss nothing. */
const samplesKept = 60

export interface LoopWatch {
  /** Brings the numbers up to date. Call every second or so. */
  sample(): void
  close(): void
}

/** Watches how late the event loop of this thread is. */
export function watchEventLoop(metrics: Metrics): LoopWatch {
  const delays = monitorEventLoopDelay({ resolution })
  delays.enable()
  let samples = 0
  return {
    sample() {
      metrics.set(loopDelay, delaySeconds(delays.percentile(99)))
      metrics.set(loopDelayMax, delaySeconds(delays.max))
      samples += 1
      if (samples % samplesKept === 0) delays.reset()
    },
    close() {
      delays.disable()
    },
  }
}

/** It measures the time between two looks, of which `resolution` is as it should be. */
const delaySeconds = (nanoseconds: number): number => Math.max(0, nanoseconds / 1e6 - resolution) / 1e3
