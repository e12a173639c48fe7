import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** A time for which the event loop of the gateway stood still. Milliseconds. */
export interface Stall {
  /** End, since the epoch. */
  readonly at: number
  readonly ms: number
  /** The thread ran. */
  readonly ranMs: number
  /** It was ready to run, and something else had the core. */
  readonly waitedMs: number
}

/** Name of the file of stalls, in the working directory of the gateway: one as JSON on each line. */
export const stallsFile = 'stalls.jsonl'

/** Arguments for node with which a gateway writes its stalls. */
export const stallProbe = ['--import', fileURLToPath(new URL('stall-probe.ts', import.meta.url))]

/** The stall since a time in which the gateway worked longest. Undefined: there was none. */
export function longestStall(folder: string, since: number): Stall | undefined {
  const file = join(folder, stallsFile)
  if (!existsSync(file)) return undefined
  const all = readFileSync(file, 'utf8')
    .split('\n')
    .filter(line => line !== '')
    .map((line): Stall => JSON.parse(line))
  return all.filter(({ at }) => at >= since).sort((left, right) => right.ranMs - left.ranMs)[0]
}
