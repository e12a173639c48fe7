import { setTimeout } from 'node:timers/promises'
import { residentBytes } from './cpu.ts'
import { goalsOfRows, memoryGoals, stallGoal } from './goals.ts'
import type { Sender } from './load.ts'
import type { Cores } from './machine.ts'
import type { Road } from './roads.ts'
import { type Contestant, type Measured, measureRounds, type Round } from './rounds.ts'
import { measureSlices, type SlicesSetup } from './sliced.ts'
import { type Stall, stallProbe } from './stall.ts'
import { startNodeUpstream, startTlsUpstream } from './upstream.ts'
import type { Work } from './works.ts'

export interface WorksSetup {
  readonly connections: number
  /** Slices of each road; how long they are depends on the work. */
  readonly slices: number
  /** Rounds of the roads that goals compare. */
  readonly rounds: number
  readonly sender: Sender
  readonly cores: Cores
  readonly built: boolean
  readonly progress: (text: string) => void
}

/** Length of a round, seconds: of works there are many. */
const roundSeconds = 1
/** In which memory is given back, milliseconds. */
const restMs = 10_000

/** Measures one work after the other, its roads in the same slices; only what that work needs is running meanwhile. */
export async function measureWorks(roads: readonly Road[], setup: WorksSetup): Promise<readonly Measured[]> {
  const byWork = Map.groupBy(
    roads.filter(({ work }) => work !== undefined),
    ({ work }) => work?.name,
  )
  const measured: Measured[] = []
  if (setup.slices === 0 && setup.rounds === 0) return measured
  for (const [name, group] of byWork) {
    setup.progress(`slices of ${name}`)
    measured.push(...(await measureWork(group[0]?.work as Work, group, setup)))
  }
  return measured
}

async function measureWork(work: Work, roads: readonly Road[], setup: WorksSetup): Promise<readonly Measured[]> {
  const { cores, built, slices } = setup
  const { connections = setup.connections } = work
  const upstream = await (work.tls === true ? startTlsUpstream : startNodeUpstream)(cores.others)
  const started: Contestant[] = []
  try {
    for (const road of roads) {
      const nodeOptions = road.name === stallGoal.road ? stallProbe : []
      started.push({ name: road.name, ...(await road.open({ upstream, cores: cores.proxy, built, nodeOptions })) })
    }
    const { perSlice } = work
    const size = { connections, slices, perSlice, cores: cores.others }
    const cpu = slices === 0 ? new Map<string, number[]>() : await measureSlices(started, size)
    const busy = await measureBusy(work, started, setup)
    const stalled = started.find(({ name }) => name === stallGoal.road)
    const stall = stalled === undefined || slices === 0 ? undefined : await measureStall(stalled, size)
    const resident = await measureMemory(started)
    return resident.map(one => ({
      ...{ ...one, rounds: busy.get(one.name) ?? [], slices: cpu.get(one.name) ?? [] },
      ...(one.name === stallGoal.road ? { stall } : {}),
    }))
  } finally {
    await Promise.all([upstream, ...started].map(({ process }) => process?.stop()))
  }
}

/** Rounds in which the roads of goals are as busy as they can be. */
async function measureBusy(
  work: Work,
  started: readonly Contestant[],
  { sender, rounds, progress, ...setup }: WorksSetup,
): Promise<ReadonlyMap<string, readonly Round[]>> {
  if (work.isPaced === true || rounds === 0) return new Map()
  const { connections = setup.connections } = work
  const goals = goalsOfRows(undefined)
  const compared = started.filter(({ name }) => goals.some(({ of, against }) => name === of || name === against))
  const measured = await measureRounds(compared, { sender, connections, seconds: roundSeconds, rounds, progress })
  return new Map(measured.map(one => [one.name, one.rounds]))
}

type Resident = Pick<Measured, 'name' | 'residentBytes' | 'restingBytes'>

/** Right after the load; and once more, later, where that was more than the goal. */
async function measureMemory(started: readonly Contestant[]): Promise<readonly Resident[]> {
  const bytesOf = ({ process }: Contestant) => (process === undefined ? undefined : residentBytes(process.pid))
  const under = started.map(road => ({ road, name: road.name, residentBytes: bytesOf(road) }))
  const isOver = under.map(
    ({ name, residentBytes: bytes = 0 }) => bytes > (memoryGoals.get(name) ?? Number.POSITIVE_INFINITY) * 2 ** 20,
  )
  if (isOver.includes(true)) await setTimeout(restMs)
  return under.map(({ road, ...one }, at) => (isOver[at] ? { ...one, restingBytes: bytesOf(road) } : one))
}

/** The longest stall once all code is compiled. */
async function measureStall(road: Contestant, size: SlicesSetup): Promise<Stall | undefined> {
  const since = Date.now()
  await measureSlices([road], { ...size, warmup: 0 })
  return road.longestStall?.(since)
}
