/**
 * Several proxies in turn, a few hundred requests each: `node slices.ts FILE`, with the load as JSON. Slices of some 20 ms
 * meet the same weather, so that their ratios hold still on a machine that does other things too, where rounds of
 * seconds would not. Prints CPU time for one request, microseconds, of each slice of each proxy.
 */
import { readFileSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import { cpuExactly } from './cpu.ts'
import { type Exchanges, openExchanges } from './exchanges.ts'
import type { Request } from './load.ts'

/** Proxies to measure, by the request that each gets and the process it is. */
export interface SlicedLoad {
  readonly proxies: readonly { readonly request: Request; readonly pid: number }[]
  readonly connections: number
  readonly slices: number
  readonly perSlice: number
  /** CPU time that each takes before anything counts, seconds: code is compiled in stages. */
  readonly warmup: number
}

/** Milliseconds in which the last answer is out and the process asleep. */
const settleMs = 1

const load = JSON.parse(readFileSync(process.argv[2] as string, 'utf8')) as SlicedLoad
const proxies = await Promise.all(
  load.proxies.map(async ({ request, pid }) => ({ pid, all: await openExchanges(request, load.connections, fail) })),
)

/** What happens on a connection that nothing was sent on. It ends this process: no slice would ever be whole again. */
function fail({ head }: Exchanges): never {
  throw new Error(
    `a connection was closed while others had their turn, or an answer came that nobody asked for: ${head}`,
  )
}

/** Sends so many requests, each connection the next one behind its answer, and resolves behind the last. */
async function slice(all: readonly Exchanges[], requests: number): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  let sent = Math.min(all.length, requests)
  let answered = 0
  for (const exchanges of all) {
    exchanges.onAnswer = ({ head }, good) => {
      if (!good) reject(new Error(`a request failed: ${head}`))
      if (++answered === requests) resolve()
      else if (sent < requests) {
        sent += 1
        exchanges.send()
      }
    }
  }
  for (const exchanges of all.slice(0, sent)) exchanges.send()
  await promise
  for (const exchanges of all) exchanges.onAnswer = fail
}

async function measure({ pid, all }: (typeof proxies)[number]): Promise<number> {
  await setTimeout(settleMs)
  const before = cpuExactly(pid)
  await slice(all, load.perSlice)
  await setTimeout(settleMs)
  return (cpuExactly(pid) - before) / load.perSlice
}

/** Compiling takes CPU time of its own: measured too early, a POST of 128 KiB costs a quarter more. */
async function warmUp(): Promise<void> {
  const begun = new Map(proxies.map(({ pid }) => [pid, cpuExactly(pid)]))
  const isCold = ({ pid }: { readonly pid: number }) => cpuExactly(pid) - (begun.get(pid) ?? 0) < load.warmup * 1e6
  for (let cold = proxies.filter(isCold); cold.length > 0; cold = cold.filter(isCold)) {
    for (const { all } of cold) await slice(all, load.perSlice)
  }
}

await warmUp()
const cpu = proxies.map((): number[] => [])
for (let round = 0; round < load.slices; round++) {
  for (let turn = 0; turn < proxies.length; turn++) {
    const index = (turn + round) % proxies.length
    cpu[index]?.push(await measure(proxies[index] as (typeof proxies)[number]))
  }
}
process.stdout.write(`${JSON.stringify(cpu)}\n`, () => process.exit())
