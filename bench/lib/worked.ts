import { residentBytes } from './cpu.ts'
import type { Cores } from './machine.ts'
import type { Road } from './roads.ts'
import type { Contestant, Measured } from './rounds.ts'
import { measureSlices } from './sliced.ts'
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

/** Slices to each road before anything counts: code is compiled in stages. */
const warmupSlices = 20

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
      started.push({ name: road.name, ...(await road.open({ upstream, cores: cores.proxy, built })) })
    }
    const { perSlice } = work
    const size = { connections, slices, perSlice, warmup: warmupSlices * perSlice, cores: cores.others }
    const cpu = await measureSlices(started, size)
    return await Promise.all(
      started.map(async ({ name, process, longestStall }) => ({
        ...{ name, rounds: [], cpu: cpu.get(name) ?? [] },
        residentBytes: process === undefined ? undefined : residentBytes(process.pid),
        longestStallMs: await longestStall?.(),
      })),
    )
  } finally {
    await Promise.all([upstream, ...started].map(({ process }) => process?.stop()))
  }
}
