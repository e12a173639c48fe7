import { readdirSync, readFileSync } from 'node:fs'
import type { Clock } from '../runtime/clock.ts'
import { ownVersion } from '../runtime/version.ts'
import type { MetricSample } from './exposition.ts'

/** Resources that the process uses, under the names that dashboards expect. */
export function createProcessReadings({ now }: Clock): () => readonly MetricSample[] {
  const startedAt = now() / 1_000 - process.uptime()
  return () => {
    const { user, system } = process.cpuUsage()
    const { rss, heapUsed, external } = process.memoryUsage()
    return [
      {
        name: 'process_cpu_seconds_total',
        help: 'CPU time of all threads.',
        type: 'counter',
        value: (user + system) / 1e6,
      },
      gauge('process_start_time_seconds', 'When the process started, seconds since the epoch.', startedAt),
      gauge('process_resident_memory_bytes', 'Resident memory.', rss),
      ...systemReadings(),
      gauge('nodejs_heap_size_used_bytes', 'Heap of the main thread in use.', heapUsed),
      gauge('nodejs_external_memory_bytes', 'Memory of buffers of the main thread.', external),
      { ...gauge('nodejs_version_info', 'Version of Node.js.', 1), labels: { version: process.version } },
      {
        ...gauge('agent_gateway_build_info', 'Version of the gateway.', 1),
        labels: { version: ownVersion(), node: process.version },
      },
    ]
  }
}

const gauge = (name: string, help: string, value: number): MetricSample => ({ name, help, type: 'gauge', value })

/** What only the system knows. Left out where it does not say. */
function systemReadings(): readonly MetricSample[] {
  const open = orUndefined(() => readdirSync('/proc/self/fd').length)
  const max = maxOpenFiles()
  const virtual = orUndefined(() => /^VmSize:\s+(\d+) kB/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1])
  return [
    // The folder itself is open while it is read.
    ...(open === undefined ? [] : [gauge('process_open_fds', 'Open file descriptors.', open - 1)]),
    ...(max === undefined ? [] : [gauge('process_max_fds', 'Limit of open file descriptors.', max)]),
    ...(virtual === undefined
      ? []
      : [gauge('process_virtual_memory_bytes', 'Virtual memory.', Number(virtual) * 1_024)]),
  ]
}

/** Files that this process may have open; undefined where the system does not say. */
export function maxOpenFiles(): number | undefined {
  const text = orUndefined(() => /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1])
  return text === undefined ? undefined : Number(text)
}

function orUndefined<T>(read: () => T): T | undefined {
  try {
    return read()
  } catch {
    return undefined
  }
}
