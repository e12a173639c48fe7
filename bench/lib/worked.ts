import { residentBytes } from './cpu.ts'
import { stallGoal } from './goals.ts'
import type { Cores } from './machine.ts'
import type { Road } from './roads.ts'
import type { Contestant, Measured } from './rounds.ts'
import { measureSlices, type SlicesSetup } from './sliced.ts'
import { type Stall, stallProbe } from './stall.ts'
import { startNodeUpstream, startTlsUpstream } from './upstream.ts'
import type { Work } from './works.ts'

export interface WorksSetup {
  readonly connections: number
  /** Slices of each road; how long they are depends on the work. */
  readonly slices: number
  readonly cores: Cores
  readonly built: boolean
  readonly progress: (text: string) => void
}

/** Measures one work after the other, its roads in the same slices; only what that work needs is running meanwhile. */
export async function measureWorks(roads: readonly Road[], setup: WorksSetup): Promise<readonly Measured[]> {
  const byWork = Map.groupBy(
    roads.filter(({ work }) => work !== undefined),
    ({ work }) => work?.name,
  )
  const measured: Measured[] = []
  if (setup.slices === 0) return measured
  for (const [name, group] of byWork) {
    setup.progress(`slices of ${name}`)
    measured.push(...(await measureWork(group[0]?.work as Work, group, setup)))
  }
  return measured
}

async function measureWork(work: Work, roads: readonly Road[], setup: WorksSetup): Promise<readonly Measured[]> {
  const { cores, built, connections, slices } = setup
  const upstream = await (work.tls === true ? startTlsUpstream : startNodeUpstream)(cores.others)
  const started: Contestant[] = []
  try {
    for (const road of roads) {
      const nodeOptions = road.name === stallGoal.road ? stallProbe : []
      started.push({ name: road.name, ...(await road.open({ upstream, cores: cores.proxy, built, nodeOptions })) })
    }
    const { perSlice } = work
    const size = { connections, slices, perSlice, cores: cores.others }
    const cpu = await measureSlices(started, size)
    const stalled = started.find(({ name }) => name === stallGoal.road)
    const stall = stalled === undefined ? undefined : await measureStall(stalled, size)
    return started.map(({ name, process }) => ({
      ...{ name, rounds: [], cpu: cpu.get(name) ?? [] },
      residentBytes: process === undefined ? undefined : residentBytes(process.pid),
      ...(name === stallGoal.road ? { stall } : {}),
    }))
  } finally {
    await Promise.all([upstream, ...started].map(({ process }) => process?.stop()))
  }
}

/** The longest stall once all code is compiled. */
async function measureStall(road: Contestant, size: SlicesSetup): Promise<Stall | undefined> {
  const since = Date.now()
  await measureSlices([road], { ...size, warmup: 0 })
  return road.longestStall?.(since)
}
