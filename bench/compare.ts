/**
 * Two revisions of the gateway in one interleaved run: `node bench/compare.ts REV`. Figures of two runs cannot be
 * compared on a machine that does other things too; ratios of slices of 20 ms taken in turn can.
 */
import { execFileSync } from 'node:child_process'
import { existsSync, symlinkSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { chooseCores, describeMachine, machineText } from './lib/machine.ts'
import { readOptions } from './lib/options.ts'
import { temporaryFolder } from './lib/processes.ts'
import { roadCalled, startUpstreamOf } from './lib/roads.ts'
import { type Contestant, watchOthers } from './lib/rounds.ts'
import { measureSlices } from './lib/sliced.ts'
import { quantile, ratios } from './lib/stats.ts'
import { figure, table } from './lib/table.ts'

const help = `usage: node bench/compare.ts [options] REV [REV]

Compares a revision (or a folder with the sources) with the work tree, or with a second one.

  --slices N        slices of each, taken in turn (200): 1,000 small GETs, or fewer of what takes longer
  --connections N   connections of the load (64)
  --road NAME       gateway, gateway-1000, gateway-log, post-16k-unread, down-1m, events, ... (gateway)
  --beside NAME     compares the road with this one, both of REV, in place of two revisions
  --json            the result as JSON
`

const { values, positionals } = readOptions(
  help,
  {
    slices: { type: 'string', default: '200' },
    connections: { type: 'string', default: '64' },
    road: { type: 'string', default: 'gateway' },
    beside: { type: 'string' },
    json: { type: 'boolean', default: false },
  },
  { least: 1, most: 2 },
)

const project = fileURLToPath(new URL('..', import.meta.url))

const [first = '', second = project] = positionals
const contests =
  values.beside === undefined
    ? ([
        ['before', values.road, first],
        ['after', values.road, second],
      ] as const)
    : ([
        ['before', values.road, first],
        ['after', values.beside, first],
      ] as const)
await main()
process.exit()

async function main(): Promise<void> {
  const cores = await chooseCores()
  const machine = await describeMachine()
  const road = roadCalled(values.road)
  const upstream = await startUpstreamOf(road, cores.others)
  const contestants: Contestant[] = []
  const [before, after] = contests.map(([, road, revision]) => `${revision}, ${road}`)
  for (const [name, called, revision] of contests) {
    const place = { upstream, cores: cores.proxy, root: sourcesOf(revision) }
    const { request, process } = await roadCalled(called).open(place)
    contestants.push({ name, request, process })
  }
  const pids = contestants.map(({ process }) => process?.pid as number)
  const othersShare = watchOthers([upstream.process.pid, ...pids], machine.cores)
  const { perSlice = 1_000, connections = Number(values.connections) } = road.work ?? {}
  const size = { connections, slices: Number(values.slices), perSlice }
  const cpu = await measureSlices(contestants, { ...size, cores: cores.others })
  if (values.json)
    console.log(JSON.stringify({ before, after, machine, ...size, cpu: Object.fromEntries(cpu) }, null, 2))
  else {
    console.log(`${machineText(machine, cores)}
other processes took ${(othersShare() * 100).toFixed(0)} % of the machine meanwhile

before: ${before}
after: ${after}

${cpuText(cpu)}`)
  }
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

function cpuText(cpu: ReadonlyMap<string, readonly number[]>): string {
  const [before = [], after = []] = [...cpu.values()]
  const row = (name: string, all: readonly number[], digits: number) => [
    name,
    ...[0.5, 0.25, 0.75].map(share => figure(quantile(all, share), digits)),
  ]
  const changes = ratios(after, before)
  // Twice the standard error of a median, from its quarters.
  const error = (1.86 * (quantile(changes, 0.75) - quantile(changes, 0.25))) / Math.sqrt(changes.length)
  return `${table(
    ['CPU us/request', 'median', 'lower quarter', 'upper quarter'],
    [row('before', before, 1), row('after', after, 1), row('after / before, of each slice', changes, 3)],
  )}

${figure(quantile(changes, 0.5), 3)} of before, give or take ${figure(error, 3)}`
}
