import { cpuMicroseconds, machineMicroseconds, ownMicroseconds, residentBytes } from './cpu.ts'
import type { Answers, Load, Sender } from './load.ts'
import type { StartedRoad } from './roads.ts'
import type { Stall } from './stall.ts'

/** A road that is ready, by its name. */
export interface Contestant extends StartedRoad {
  readonly name: string
}

/** One round of one road, with as many requests as its connections carry. */
export interface Round {
  readonly perSecond: number
  /** CPU time of the proxy for one answered request, user and system; NaN when there is no proxy. */
  readonly cpu: number
  /** Milliseconds. */
  readonly p50: number
  readonly p99: number
}

export interface Measured {
  readonly name: string
  readonly rounds: readonly Round[]
  /** CPU time for one request in each slice, microseconds (slices.ts). */
  readonly slices: readonly number[]
  /** After the last round. */
  readonly residentBytes: number | undefined
  /** Ten seconds after that, where more was taken than the goal allows. */
  readonly restingBytes?: number | undefined
  /** Of the gateway, where it was asked for: undefined when there was none. */
  readonly stall?: Stall | undefined
}

export interface RoundsSetup {
  readonly sender: Sender
  readonly connections: number
  readonly seconds: number
  readonly rounds: number
  /** Offered load; undefined for as much as the connections carry. */
  readonly perSecond?: number
  readonly progress: (text: string) => void
}

/**
 * Measures the roads in turn, round after round, so that whatever the machine does meanwhile meets all of them. Each
 * round begins with another road. A first round warms up and does not count.
 */
export async function measureRounds(
  contestants: readonly Contestant[],
  setup: RoundsSetup,
): Promise<readonly Measured[]> {
  const rounds = new Map<string, Round[]>(contestants.map(({ name }) => [name, []]))
  for (let round = 0; round <= setup.rounds; round++) {
    const first = round % contestants.length
    for (const contestant of [...contestants.slice(first), ...contestants.slice(0, first)]) {
      setup.progress(`round ${round} of ${setup.rounds}: ${contestant.name}`)
      const measured = await measure(contestant, setup)
      if (round > 0) rounds.get(contestant.name)?.push(measured)
    }
  }
  return contestants.map(({ name, process }) => ({
    name,
    rounds: rounds.get(name) ?? [],
    slices: [],
    residentBytes: process === undefined ? undefined : residentBytes(process.pid),
  }))
}

async function measure({ request, process }: Contestant, setup: RoundsSetup): Promise<Round> {
  const spentSoFar = () => (process === undefined ? Number.NaN : cpuMicroseconds(process.pid))
  const before = spentSoFar()
  const answers = await send({ request, connections: setup.connections, seconds: setup.seconds }, setup)
  const spent = spentSoFar() - before
  const { requests, seconds, p50, p99 } = answers
  return { perSecond: requests / seconds, cpu: spent / requests, p50, p99 }
}

function send(load: Load, { sender, perSecond }: RoundsSetup): Promise<Answers> {
  return perSecond === undefined ? sender.send(load) : sender.sendPaced(load, perSecond)
}

/**
 * Watches what else runs: call it before, and the returned function after, with the processes of the run.
 * The share of the machine that others took, 0 to 1.
 */
export function watchOthers(pids: readonly number[], cores: number): () => number {
  const ours = () => pids.reduce((sum, pid) => sum + cpuMicroseconds(pid), ownMicroseconds())
  const others = () => machineMicroseconds() - ours()
  const [start, before] = [performance.now(), others()]
  return () => Math.max(0, (others() - before) / ((performance.now() - start) * 1e3 * cores))
}
