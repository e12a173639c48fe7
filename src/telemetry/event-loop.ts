import { constants, monitorEventLoopDelay, PerformanceObserver } from 'node:perf_hooks'
import { gcTime, loopDelay, loopDelayMax } from './layout.ts'
import type { Metrics } from './metrics.ts'

/** Interval between samples of the loop, milliseconds: long enough to cost nothing. */
const resolution = 20
/** The longest delay is that of the last minute, so that scrapes at usual intervals miss nothing. */
const samplesKept = 60

/** Measures the delay of the event loop of this thread, and its pauses for garbage collection. */
export function watchEventLoop(metrics: Metrics) {
  const delays = monitorEventLoopDelay({ resolution })
  delays.enable()
  const collections = watchCollections(metrics)
  let samples = 0
  return {
    /** Updates the metrics. Call every second or so. */
    sample() {
      metrics.set(loopDelay, delaySeconds(delays.percentile(99)))
      metrics.set(loopDelayMax, delaySeconds(delays.max))
      samples += 1
      if (samples % samplesKept === 0) delays.reset()
    },
    close() {
      delays.disable()
      collections.disconnect()
    },
  }
}

/** Node measures the time between two samples, which is `resolution` without any delay. */
const delaySeconds = (nanoseconds: number): number => Math.max(0, nanoseconds / 1e6 - resolution) / 1e3

const collectionKinds: ReadonlyMap<number, string> = new Map([
  [constants.NODE_PERFORMANCE_GC_MINOR, 'minor'],
  [constants.NODE_PERFORMANCE_GC_MAJOR, 'major'],
  [constants.NODE_PERFORMANCE_GC_INCREMENTAL, 'incremental'],
  [constants.NODE_PERFORMANCE_GC_WEAKCB, 'weakcb'],
])

function watchCollections(metrics: Metrics): PerformanceObserver {
  const observer = new PerformanceObserver(list => {
    for (const entry of list.getEntries()) {
      // Entries of this type have a detail, which the types do not say.
      const { detail } = entry as unknown as { readonly detail: { readonly kind: number } }
      metrics.observe(gcTime, entry.duration / 1e3, collectionKinds.get(detail.kind))
    }
  })
  observer.observe({ entryTypes: ['gc'] })
  return observer
}
