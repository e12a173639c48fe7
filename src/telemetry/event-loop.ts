import { monitorEventLoopDelay } from 'node:perf_hooks'
import { loopDelay, loopDelayMax } from './layout.ts'
import type { Metrics } from './metrics.ts'

/** Interval between samples of the loop, milliseconds: long enough to cost nothing. */
const resolution = 20
/** The longest delay is that of the last minute, so that scrapes at usual intervals miss nothing. */
const samplesKept = 60

export interface LoopWatch {
  /** Updates the metrics. Call every second or so. */
  sample(): void
  close(): void
}

/** Measures the delay of the event loop of this thread. */
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

/** Node measures the time between two samples, which is `resolution` without any delay. */
const delaySeconds = (nanoseconds: number): number => Math.max(0, nanoseconds / 1e6 - resolution) / 1e3
