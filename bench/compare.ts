/**
 * Two revisions of the gateway in one interleaved run: `node bench/compare.ts REV`. Figures of two runs cannot be
 * compared on a machine that does other things too; ratios of slices of 20 ms taken in turn can.
 */
import { execFileSync } from 'node:child_process'
import { existsSync, symlinkSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Cores, chooseCores, describeMachine, type Machine, machineText } from './lib/machine.ts'
import { readOptions } from './lib/options.ts'
import { temporaryFolder } from './lib/processes.ts'
import { roadCalled } from './lib/roads.ts'
import { watchOthers } from './lib/rounds.ts'
import { measureSlices } from './lib/sliced.ts'
import { type Starting, withStarted } from './lib/starts.ts'
import { median, quantile, ratios, spreadOf } from './lib/stats.ts'
import { figure, table } from './lib/table.ts'

const help = `usage: node bench/compare.ts [options] REV [REV]

Compares a revision (or a folder with the sources) with the work tree, or with a second one.

  --slices N        slices of each, taken in turn (200): 1,000 small GETs, or fewer of what takes longer
  --connections N   connections of the load (64)
  --road NAME       gateway, gateway-1000, gateway-log, post-16k-unread, down-1m, events, ... (gateway)
  --starts N        repeats it all with new processes so many times (1): V8 compiles the same sources in another order each time,
                    so that two starts of the same code differ by some percent
  --warmup N        CPU seconds that each takes before anything counts (2)
  --beside NAME     compares the road with this one, both of REV, in place of two revisions
  --json            the result as JSON
`

const { values, positionals } = readOptions(
  help,
  {
    slices: { type: 'string', default: '200' },
    connections: { type: 'string', default: '64' },
    starts: { type: 'string', default: '1' },
    warmup: { type: 'string', default: '2' },
    road: { type: 'string', default: 'gateway' },
    beside: { type: 'string' },
    json: { type: 'boolean', default: false },
  },
  { least: 1, most: 2 },
)

const project = fileURLToPath(new URL('..', import.meta.url))

const [first = '', second = project] = positionals
const [road, beside] = [values.road, values.beside ?? values.road]
const revisions = [first, values.beside === undefined ? second : first] as const
const { perSlice = 1_000, connections = Number(values.connections) } = roadCalled(road).work ?? {}
const size = { connections, perSlice, slices: Number(values.slices), warmup: Number(values.warmup) }
await main()
process.exit()

/** CPU time for one request in each slice, microseconds, of one start of both. */
interface Compared {
  readonly before: readonly number[]
  readonly after: readonly number[]
  /** Share of the machine that other processes took meanwhile. */
  readonly others: number
}

async function main(): Promise<void> {
  const cores = await chooseCores()
  const machine = await describeMachine()
  const [before, after] = [`${revisions[0]}, ${road}`, `${revisions[1]}, ${beside}`]
  const starting: [Starting, Starting] = [
    { name: 'before', road, root: sourcesOf(revisions[0]) },
    { name: 'after', road: beside, root: sourcesOf(revisions[1]) },
  ]
  if (!values.json) console.log(`${machineText(machine, cores)}\n\nbefore: ${before}\nafter: ${after}\n`)
  const starts: Compared[] = []
  while (starts.length < Number(values.starts)) {
    const compared = await compare(starting, cores, machine)
    starts.push(compared)
    if (!values.json) console.log(`${comparedText(compared)}\n`)
  }
  if (values.json) console.log(JSON.stringify({ before, after, machine, ...size, starts }, null, 2))
  else if (starts.length > 1) console.log(startsText(starts))
}

function compare(starting: [Starting, Starting], cores: Cores, machine: Machine): Promise<Compared> {
  return withStarted(starting, { cores }, async (started, upstream) => {
    const pids = started.map(({ process }) => process?.pid as number)
    const othersShare = watchOthers([upstream.process.pid, ...pids], machine.cores)
    const cpu = await measureSlices(started, { ...size, cores: cores.others })
    return { before: cpu.get('before') ?? [], after: cpu.get('after') ?? [], others: othersShare() }
  })
}

/** Folder of the sources of a revision. The packages are those of the work tree. */
function sourcesOf(revision: string): string {
  if (existsSync(join(revision, 'src/main.ts'))) return resolve(revision)
  const folder = temporaryFolder()
  const files = execFileSync('git', ['ls-tree', '--name-only', revision], { cwd: project, encoding: 'utf8' }).split(
    '\n',
  )
  // Earlier revisions have no prices.
  const read = ['src', 'package.json', 'openapi.json', 'prices.json'].filter(name => files.includes(name))
  const archive = execFileSync('git', ['archive', revision, ...read], {
    cwd: project,
    maxBuffer: 2 ** 28,
  })
  execFileSync('tar', ['-x', '-C', folder], { input: archive })
  symlinkSync(join(project, 'node_modules'), join(folder, 'node_modules'))
  return folder
}

function comparedText({ before, after, others }: Compared): string {
  const row = (name: string, all: readonly number[], digits: number) => {
    const { median, low, high } = spreadOf(all)
    return [name, ...[median, low, high].map(value => figure(value, digits))]
  }
  const changes = ratios(after, before)
  // Twice the standard error of a median, from its quarters.
  const error = (1.86 * (quantile(changes, 0.75) - quantile(changes, 0.25))) / Math.sqrt(changes.length)
  return `${table(
    ['CPU us/request', 'median', 'lower quarter', 'upper quarter'],
    [row('before', before, 1), row('after', after, 1), row('after / before, of each slice', changes, 3)],
  )}

${figure(median(changes), 3)} of before, give or take ${figure(error, 3)}; other processes took ${figure(others * 100)} % of the machine meanwhile`
}

function startsText(starts: readonly Compared[]): string {
  const of = starts.map(({ before, after }) => median(ratios(after, before)))
  const { median: middle, low, high } = spreadOf(of)
  return `${of.map(ratio => figure(ratio, 3)).join(', ')}
${starts.length} starts: ${figure(middle, 3)} of before, quarters ${figure(low, 3)} and ${figure(high, 3)}`
}
