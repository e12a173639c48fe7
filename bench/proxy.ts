/** The gateway against its peers on this machine: `npm run bench`. bench/README.md says what is measured and how. */
import { writeFileSync } from 'node:fs'
import { chartOf } from './lib/chart.ts'
import {
  type Goal,
  goalsOfRows,
  judgeCpu,
  judgeMemory,
  judgePaced,
  judgeSaturated,
  judgeStall,
  judgeStarts,
  type Outcome,
  type PacedGoal,
  pacedGoals,
} from './lib/goals.ts'
import { createSender, type Sender } from './lib/load.ts'
import { chooseCores, describeMachine, machineText } from './lib/machine.ts'
import { readOptions } from './lib/options.ts'
import { versionOf } from './lib/processes.ts'
import { figuresText, outcomesText } from './lib/report.ts'
import { type Road, roads } from './lib/roads.ts'
import { type Contestant, type Measured, measureRounds, watchOthers } from './lib/rounds.ts'
import { measureSlices } from './lib/sliced.ts'
import { measureStarts } from './lib/starts.ts'
import { median } from './lib/stats.ts'
import { startUpstream } from './lib/upstream.ts'
import { measureWorks } from './lib/worked.ts'

const goalNames = [...new Set(goalsOfRows(undefined).map(({ of }) => of))].join(', ')

const help = `usage: npm run bench -- [options]

  --rounds N        saturated rounds that count, after one to warm up (4)
  --seconds N       length of one round of one road (2); of a kind of work, 1
  --slices N        slices of 1,000 requests of each road, for CPU time (40)
  --starts N        starts of the gateway and of HAProxy, one after the other, for the spread from start to start (10):
                    of the rows that --rows names, and of the first one otherwise
  --rows A,B        these rows of the table of goals alone, with all that they compare: ${goalNames}
  --connections N   connections of the load (64)
  --only A,B        these roads alone, without starts: ${roads.map(({ name }) => name).join(', ')}
  --sources         the gateway from its sources instead of the built package
  --json            the whole result as JSON on standard output
  --chart FILE      CPU time as an SVG chart
  --check SLACK     exit code 1 when a goal times SLACK is missed
`

const { values } = readOptions(help, {
  rounds: { type: 'string', default: '4' },
  seconds: { type: 'string', default: '2' },
  slices: { type: 'string', default: '40' },
  starts: { type: 'string', default: '10' },
  rows: { type: 'string' },
  connections: { type: 'string', default: '64' },
  only: { type: 'string' },
  sources: { type: 'boolean', default: false },
  json: { type: 'boolean', default: false },
  chart: { type: 'string' },
  check: { type: 'string' },
})

/** Share of what the slower one can carry that is offered when tails are compared. */
const pacedShare = 0.5
const size = { connections: Number(values.connections), seconds: Number(values.seconds), rounds: Number(values.rounds) }
const progress = (text: string): void => {
  if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${text}`)
}

await main()
process.exit()

async function main(): Promise<void> {
  const rows = values.rows?.split(',')
  const goals = chooseGoals(rows)
  const chosen = await chooseRoads(
    values.only?.split(',') ?? (rows && goals.flatMap(({ of, against }) => [of, against])),
  )
  const cores = await chooseCores()
  const machine = await describeMachine()
  const upstream = await startUpstream(cores.others)
  const sender = await createSender(cores.others)
  const contestants: Contestant[] = []
  const place = { upstream, cores: cores.proxy, built: !values.sources }
  for (const road of chosen.filter(({ work }) => work === undefined)) {
    progress(`starting ${road.name}`)
    contestants.push({ name: road.name, ...(await road.open(place)) })
  }
  const pids = contestants.flatMap(({ process }) => process?.pid ?? [])
  const othersShare = watchOthers([upstream.process.pid, ...pids], machine.cores)
  const rounds = await measureRounds(contestants, { sender, ...size, progress })
  progress('slices')
  const slices = { connections: size.connections, slices: Number(values.slices), perSlice: 1_000, cores: cores.others }
  const cpu = slices.slices === 0 ? new Map<string, number[]>() : await measureSlices(contestants, slices)
  const measured = rounds.map(one => ({ ...one, slices: cpu.get(one.name) ?? [] }))
  // While those that it leaves out are still there.
  const others = othersShare()
  await Promise.all(contestants.filter(({ name }) => !isPaced(name)).map(({ process }) => process?.stop()))
  const common = { connections: size.connections, cores, sender, built: !values.sources, progress }
  const worked = await measureWorks(chosen, { ...common, slices: slices.slices, rounds: size.rounds })
  const paced: Paced[] = []
  for (const goal of pacedGoals) paced.push(...(await measurePaced(goal, contestants, measured, sender)))
  // The others would share the core.
  await Promise.all(contestants.map(({ process }) => process?.stop()))
  const withHaproxy = goals.filter(({ against }) => against.includes('haproxy'))
  const compared = rows === undefined ? withHaproxy.slice(0, 1) : withHaproxy
  const starts = values.only === undefined ? Number(values.starts) : 0
  const started = await measureStarts(compared, { ...common, starts })
  progress('')
  const slack = Number(values.check ?? 1)
  const outcomes = [
    ...judgeCpu([...measured, ...worked], slack),
    ...judgeStarts(started, slack),
    ...judgeSaturated(measured, slack),
    ...judgeStall(worked, slack),
    ...paced.flatMap(({ goal, measured }) => judgePaced(goal, measured, slack)),
    ...judgeMemory([...measured, ...worked], slack),
  ]
  const ran = {
    machine,
    load: sender.tool,
    upstream: upstream.tool,
    ...size,
    slices: slices.slices,
    othersShare: others,
  }
  if (values.json) console.log(JSON.stringify({ ...ran, measured, worked, started, paced, outcomes }, null, 2))
  else {
    console.log(`${machineText(machine, cores)}
load by ${sender.tool}, ${size.connections} connections, ${size.rounds} rounds of ${size.seconds} s, ${slices.slices} slices of 1,000; upstream ${upstream.tool}
other processes took ${(others * 100).toFixed(0)} % of the machine meanwhile
`)
    printResult([...measured, ...worked], paced, outcomes)
  }
  if (values.chart !== undefined)
    writeFileSync(values.chart, chartOf([...measured, ...worked], `${machine.cpu}, Node ${machine.node}`))
  if (values.check !== undefined && outcomes.some(({ met }) => !met)) process.exitCode = 1
}

/** The goals of the rows asked for, or all. */
function chooseGoals(rows: readonly string[] | undefined): readonly Goal[] {
  const goals = goalsOfRows(rows)
  const unknown = rows?.find(row => !goals.some(({ of }) => of === row))
  if (unknown !== undefined) throw new Error(`no row is called ${unknown}\n${help}`)
  return goals
}

/** The roads asked for, or all that this machine has the programs for. */
async function chooseRoads(names: readonly string[] | undefined): Promise<readonly Road[]> {
  const unknown = names?.find(name => !roads.some(road => road.name === name))
  if (unknown !== undefined) throw new Error(`no road is called ${unknown}\n${help}`)
  const chosen: Road[] = []
  for (const road of roads) {
    if (names !== undefined && !names.includes(road.name)) continue
    if (road.needs !== undefined && (await versionOf(road.needs)) === undefined) continue
    chosen.push(road)
  }
  return chosen
}

interface Paced {
  readonly goal: PacedGoal
  readonly perSecond: number
  readonly measured: readonly Measured[]
}

/** Whether the road is still needed for the comparison of tails. */
function isPaced(name: string): boolean {
  return pacedGoals.some(goal => goal.of === name || goal.against === name)
}

/** Compares two roads at the same load: half of what the slower of the two carries. */
async function measurePaced(
  goal: PacedGoal,
  contestants: readonly Contestant[],
  measured: readonly Measured[],
  sender: Sender,
): Promise<readonly Paced[]> {
  const names = [goal.of, goal.against]
  const both = contestants.filter(({ name }) => names.includes(name))
  // Without rounds it is not known what load they carry.
  if (both.length < 2 || size.rounds === 0) return []
  const carried = measured.filter(({ name }) => names.includes(name))
  const slower = Math.min(...carried.map(({ rounds }) => median(rounds.map(({ perSecond }) => perSecond))))
  const perSecond = Math.round(slower * pacedShare)
  return [{ goal, perSecond, measured: await measureRounds(both, { sender, ...size, perSecond, progress }) }]
}

function printResult(measured: readonly Measured[], paced: readonly Paced[], outcomes: readonly Outcome[]): void {
  console.log(figuresText(measured))
  for (const { name, about } of roads.filter(road => measured.some(({ name }) => name === road.name))) {
    console.log(`  ${name}: ${about}`)
  }
  for (const { perSecond, measured } of paced) {
    console.log(`\nat ${perSecond} requests/s offered to each:\n${figuresText(measured)}`)
  }
  if (outcomes.length > 0)
    console.log(
      `\nmedian of the ratios of each slice, round or start; a goal is held against the worse column:\n${outcomesText(outcomes)}`,
    )
}
