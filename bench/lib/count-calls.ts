/** Loaded into a process with --import: counts the calls of its functions between two signals SIGUSR2 (called.ts). */
import { mkdirSync, renameSync, writeFileSync } from 'node:fs'
import { Session } from 'node:inspector'
import { dirname } from 'node:path'
import { type CountedFunction, countFile } from './called.ts'

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
  if (isCounting) session.post('Profiler.takePreciseCoverage', (_, { result }) => write(calledIn(result)))
  else session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false }, () => write([]))
  isCounting = true
})

function calledIn(scripts: readonly Script[]): readonly CountedFunction[] {
  return scripts.flatMap(({ url, functions }) =>
    functions.flatMap(({ functionName: name, ranges: [range] }) =>
      range === undefined || range.count === 0 ? [] : [{ url, name, at: range.startOffset, calls: range.count }],
    ),
  )
}

function write(list: readonly CountedFunction[]): void {
  const file = countFile(process.pid)
  mkdirSync(dirname(file), { recursive: true })
  // Renamed into place, so that nobody reads half of it.
  writeFileSync(`${file}.part`, JSON.stringify(list))
  renameSync(`${file}.part`, file)
}
