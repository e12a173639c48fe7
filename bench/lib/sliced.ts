import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { run, temporaryFolder } from './processes.ts'
import type { Contestant } from './rounds.ts'
import type { SlicedLoad } from './slices.ts'

export interface SlicesSetup {
  readonly connections: number
  /** Slices of each road, and requests in each. */
  readonly slices: number
  readonly perSlice: number
  /** CPU time that each takes before anything counts, seconds. */
  readonly warmup?: number
  /** Cores of the sender. */
  readonly cores: string | undefined
}

/** CPU time for one request, microseconds, of each slice: slices.ts. Roads without a process are left out. */
export async function measureSlices(
  contestants: readonly Contestant[],
  { cores, warmup = 2, ...setup }: SlicesSetup,
): Promise<ReadonlyMap<string, readonly number[]>> {
  const proxies = contestants.flatMap(({ name, request, process }) =>
    process === undefined ? [] : [{ name, request, pid: process.pid }],
  )
  const load: SlicedLoad = { ...setup, warmup, proxies }
  const script = fileURLToPath(new URL('slices.ts', import.meta.url))
  // Bodies make it longer than an argument may be.
  const file = join(temporaryFolder(), 'load.json')
  writeFileSync(file, JSON.stringify(load))
  const output = await run([process.execPath, script, file], cores)
  const cpu = JSON.parse(output.trim().split('\n').at(-1) ?? '') as number[][]
  return new Map(proxies.map(({ name }, index) => [name, cpu[index] ?? []]))
}
