import type { Clock } from '../runtime/clock.ts'
import type { MetricSample } from './exposition.ts'

/** Resources that the process uses, under the names that dashboards expect. */
export function createProcessReadings({ now }: Clock): () => readonly MetricSample[] {
  const startedAt = now() / 1_000 - process.uptime()
  return () => {
    const { user, system } = process.cpuUsage()
    const { rss, heapUsed, external } = process.memoryUsage()
    const gauge = (name: string, help: string, value: number): MetricSample => ({ name, help, type: 'gauge', value })
    return [
      {
        name: 'process_cpu_seconds_total',
        help: 'CPU time of all threads.',
        type: 'counter',
        value: (user + system) / 1e6,
      },
      gauge('process_start_time_seconds', 'When the process started, seconds since the epoch.', startedAt),
      gauge('process_resident_memory_bytes', 'Resident memory.', rss),
      gauge('nodejs_heap_size_used_bytes', 'Heap of the main thread in use.', heapUsed),
      gauge('nodejs_external_memory_bytes', 'Memory of buffers of the main thread.', external),
      { ...gauge('nodejs_version_info', 'Version of Node.js.', 1), labels: { version: process.version } },
    ]
  }
}
