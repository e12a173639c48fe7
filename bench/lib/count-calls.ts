/** Loaded into a process with --import: counts the calls of its functions between two signals SIGUSR2 (bench/calls.ts). */
import { renameSync, writeFileSync } from 'node:fs'
import { Session } from 'node:inspector'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export interface CountedFunction {
  /** URL of its file. */
  readonly url: string
  readonly name: string
  /** Where it starts in the file, characters. */
  readonly at: number
  readonly calls: number
}

/** File in which the counts of a process are, once they are taken. */
const file = join(tmpdir(), `agent-gateway-calls-${process.pid}.json`)
let isCounting = false

interface Script {
  readonly url: string
  readonly functions: readonly {
    readonly functionName: string
    readonly ranges: readonly { readonly startOffset: number; readonly count: number }[]
  }[]
}

const session = new Session()
session.connect()
session.post('Profiler.enable')
process.on('SIGUSR2', () => {
  if (isCounting) session.post('Profiler.takePreciseCoverage', (_, { result }) => write(result))
  else session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })
  isCounting = true
})

function write(scripts: readonly Script[]): void {
  const list: CountedFunction[] = scripts.flatMap(({ url, functions }) =>
    functions.flatMap(({ functionName: name, ranges: [range] }) =>
      range === undefined || range.count === 0 ? [] : [{ url, name, at: range.startOffset, calls: range.count }],
    ),
  )
  // Renamed into place, so that nobody reads half of it.
  writeFileSync(`${file}.part`, JSON.stringify(list))
  renameSync(`${file}.part`, file)
}
