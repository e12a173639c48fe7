import type { Goal, Started } from './goals.ts'
import type { Sender } from './load.ts'
import type { Cores } from './machine.ts'
import { roadCalled, startUpstreamOf } from './roads.ts'
import { type Contestant, measureRounds } from './rounds.ts'
import { measureSlices } from './sliced.ts'
import { median, ratios } from './stats.ts'
import type { Upstream } from './upstream.ts'

export interface StartsSetup {
  readonly starts: number
  readonly connections: number
  readonly cores: Cores
  readonly sender: Sender
  readonly built: boolean
  readonly progress: (text: string) => void
}

/** Of each start: slices, CPU seconds to warm up, and rounds of one second. A start takes some 8 s. */
const ofStart = { slices: 20, warmup: 1.5, rounds: 2, seconds: 1 }

/** A road, and the folder of the sources that it runs from: this project when absent. */
export interface Starting {
  readonly name: string
  readonly road: string
  readonly root?: string
}

/** Starts an upstream and these roads to it in new processes, and stops them all when `measure` is done. */
export async function withStarted<T>(
  starting: readonly [Starting, ...Starting[]],
  { cores, built = false }: { readonly cores: Cores; readonly built?: boolean },
  measure: (started: readonly Contestant[], upstream: Upstream) => Promise<T>,
): Promise<T> {
  const upstream = await startUpstreamOf(roadCalled(starting[0].road), cores.others)
  const started: Contestant[] = []
  try {
    for (const { name, road, root } of starting) {
      const place = { upstream, cores: cores.proxy, built, ...(root === undefined ? {} : { root }) }
      started.push({ name, ...(await roadCalled(road).open(place)) })
    }
    return await measure(started, upstream)
  } finally {
    await Promise.all([upstream, ...started].map(({ process }) => process?.stop()))
  }
}

/**
 * Starts both roads of each goal again and again. V8 compiles the same sources in another order each time, so that one start
 * differs from the next by some percent: more than most changes gain.
 */
export async function measureStarts(goals: readonly Goal[], setup: StartsSetup): Promise<readonly Started[]> {
  const all: Started[] = []
  if (setup.starts === 0) return all
  for (const goal of goals) {
    const [sliced, saturated]: [number[], number[]] = [[], []]
    for (let start = 1; start <= setup.starts; start++) {
      setup.progress(`start ${start} of ${setup.starts}: ${goal.of}`)
      const one = await measureStart(goal, setup)
      sliced.push(one.sliced)
      if (one.saturated !== undefined) saturated.push(one.saturated)
    }
    all.push({ goal, sliced, saturated })
  }
  return all
}

const startingAt = (road: string): Starting => ({ name: road, road })

function measureStart({ of, against }: Goal, setup: StartsSetup) {
  const { cores, built, sender } = setup
  const { connections = setup.connections, perSlice = 1_000, isPaced = false } = roadCalled(of).work ?? {}
  return withStarted([startingAt(of), startingAt(against)], { cores, built }, async started => {
    const { slices, warmup, rounds, seconds } = ofStart
    const cpu = await measureSlices(started, { connections, slices, perSlice, warmup, cores: cores.others })
    const busy = isPaced
      ? []
      : await measureRounds(started, { sender, connections, seconds, rounds, progress: () => {} })
    const [first, second] = busy.map(one => one.rounds.map(round => round.cpu))
    return {
      sliced: median(ratios(cpu.get(of) ?? [], cpu.get(against) ?? [])),
      saturated: first === undefined || second === undefined ? undefined : median(ratios(first, second)),
    }
  })
}
