/**
 * Where the CPU time of one request goes: `node bench/profile.ts`. Runs one road under load with V8's sampling
 * profiler (--cpu-prof) and prints the functions with the most time of their own, in microseconds a request.
 */
import { copyFileSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { cpuMicroseconds } from './lib/cpu.ts'
import { createSender, type Request } from './lib/load.ts'
import { chooseCores } from './lib/machine.ts'
import { readOptions } from './lib/options.ts'
import { type Running, temporaryFolder } from './lib/processes.ts'
import { type CpuProfile, type Share, sharesOf } from './lib/profile.ts'
import { type Road, roadCalled, startUpstreamOf } from './lib/roads.ts'
import { measureSlices } from './lib/sliced.ts'
import { median } from './lib/stats.ts'
import { figure, table } from './lib/table.ts'

const help = `usage: node bench/profile.ts [options]

  --road NAME       gateway, gateway-1000, gateway-log, post, post-body-rule, bare, http-proxy, ... (gateway)
  --seconds N       length of the load (10), after --warmup N (5)
  --connections N   connections of the load (64)
  --top N           rows of each table (25)
  --keep FILE       keeps the profile, for the developer tools of a browser
`

const { values } = readOptions(help, {
  road: { type: 'string', default: 'gateway' },
  seconds: { type: 'string', default: '10' },
  warmup: { type: 'string', default: '5' },
  connections: { type: 'string', default: '64' },
  top: { type: 'string', default: '25' },
  keep: { type: 'string' },
})

await main()
process.exit()

async function main(): Promise<void> {
  const road = roadCalled(values.road)
  const cores = await chooseCores()
  const upstream = await startUpstreamOf(road, cores.others)
  const folder = temporaryFolder()
  const nodeOptions = ['--cpu-prof', `--cpu-prof-dir=${folder}`]
  const place = { upstream, cores: cores.proxy, nodeOptions }
  const { request, process: proxy } = await road.open(place)
  if (proxy === undefined) throw new Error(`${values.road} has no process to profile`)
  const run = request.through === undefined ? saturated : sliced
  const { from, to, requests, each } = await run({ road, request, proxy, cores: cores.others })
  await proxy.stop(30_000)
  const file = mainProfile(folder, values.road)
  if (values.keep !== undefined) copyFileSync(file, values.keep)
  const shares = sharesOf(JSON.parse(readFileSync(file, 'utf8')) as CpuProfile, from, to)
  // Samples are taken by the wall clock, whoever has the core just then: only their proportions count.
  const sampled = shares.functions.reduce((sum, { self }) => sum + self, 0)
  const perRequest = (microseconds: number) => (microseconds / sampled) * each
  console.log(`${values.road}: ${requests} requests, ${figure(each, 1)} us of CPU time each, as follows:\n`)
  const top = Number(values.top)
  console.log(sharesText('function, by its own time', shares.functions.slice(0, top), perRequest))
  console.log(`\n${sharesText('file, by its own time', shares.files.slice(0, top), perRequest)}`)
  const own = shares.functions.filter(({ name }) => / src\//.test(name))
  const byTotal = own.toSorted((left, right) => right.total - left.total).slice(0, top)
  console.log(`\n${sharesText('own function, with all it calls', byTotal, perRequest)}`)
}

interface Profiled {
  readonly road: Road
  readonly request: Request
  readonly proxy: Running
  /** Of the load. */
  readonly cores: string | undefined
}

interface Run {
  readonly from: number
  readonly to: number
  readonly requests: number
  /** CPU time of a request, microseconds. */
  readonly each: number
}

async function saturated({ request, proxy, cores }: Profiled): Promise<Run> {
  const sender = await createSender(cores)
  const load = { request, connections: Number(values.connections) }
  await sender.send({ ...load, seconds: Number(values.warmup) })
  const [from, before] = [monotonicMicroseconds(), cpuMicroseconds(proxy.pid)]
  const { requests } = await sender.send({ ...load, seconds: Number(values.seconds) })
  return { from, to: monotonicMicroseconds(), requests, each: (cpuMicroseconds(proxy.pid) - before) / requests }
}

/** The programs that saturate a proxy know no tunnels. */
async function sliced({ road, request, proxy, cores }: Profiled): Promise<Run> {
  const { connections = 16, perSlice = 1_000 } = road.work ?? {}
  const [from, slices] = [monotonicMicroseconds(), 60]
  const setup = { connections, perSlice, slices, warmup: Number(values.warmup), cores }
  const cpu = await measureSlices([{ name: road.name, request, process: proxy }], setup)
  const each = median(cpu.get(road.name) ?? [])
  return { from, to: monotonicMicroseconds(), requests: slices * perSlice, each }
}

/** V8 stamps its samples with the same clock. */
function monotonicMicroseconds(): number {
  return Number(process.hrtime.bigint() / 1_000n)
}

/** Each thread writes a profile; that of the main thread has the id 0 in its name. */
function mainProfile(folder: string, road: string): string {
  const name = readdirSync(folder).find(file => /^CPU\.\d+\.\d+\.\d+\.0\..*\.cpuprofile$/.test(file))
  if (name === undefined) throw new Error(`${road} left no profile: does it run on Node?`)
  return join(folder, name)
}

function sharesText(title: string, shares: readonly Share[], perRequest: (microseconds: number) => number): string {
  const rows = shares.map(({ name, self, total }) => [name, figure(perRequest(self), 2), figure(perRequest(total), 2)])
  return table([title, 'self', 'total'], rows)
}
