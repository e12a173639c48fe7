/**
 * Memory over millions of requests: `node bench/soak.ts`. The gateway may not grow by more than a tenth once it has
 * served its first million. Exit code 1 when it does.
 */

import { residentBytes } from './lib/cpu.ts'
import { startGateway } from './lib/gateway.ts'
import { createSender } from './lib/load.ts'
import { chooseCores, describeMachine, machineText } from './lib/machine.ts'
import { readOptions } from './lib/options.ts'
import { proxied } from './lib/roads.ts'
import { benchPolicy } from './lib/rules.ts'
import { median } from './lib/stats.ts'
import { figure, table } from './lib/table.ts'
import { startUpstream } from './lib/upstream.ts'

const help = `usage: node bench/soak.ts [options]

  --millions N      requests to send, millions, 1 or more (10)
  --limit N         growth allowed after the first million, per cent (10)
`

const { values } = readOptions(help, {
  millions: { type: 'string', default: '10' },
  limit: { type: 'string', default: '10' },
})

const million = 1_000_000
const mebibyte = 2 ** 20
/** The collector lets memory swing by some MiB: each figure is the middle of the samples of so many requests. */
const window = million / 2
const secondsOfSample = 3

interface Sample {
  /** Requests answered so far. */
  readonly requests: number
  readonly mib: number
}

await main(Number(values.millions) * million, 1 + Number(values.limit) / 100)
process.exit()

async function main(requests: number, limit: number): Promise<void> {
  const cores = await chooseCores()
  const upstream = await startUpstream(cores.others)
  const sender = await createSender(cores.others)
  const gateway = await startGateway({ policies: [benchPolicy(100)], cores: cores.proxy })
  const place = { upstream, cores: cores.proxy }
  const request = proxied(Number(new URL(gateway.url).port), gateway.token, place)
  const samples: Sample[] = []
  for (let sent = 0; sent < requests; ) {
    sent += (await sender.send({ request, connections: 64, seconds: secondsOfSample })).requests
    samples.push({ requests: sent, mib: residentBytes(gateway.process.pid) / mebibyte })
    if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${(sent / million).toFixed(2)} million`)
  }
  console.log(`\n${machineText(await describeMachine(), cores)}\n\n${samplesText(samples, requests)}\n`)
  const [first, last] = [around(samples, million), around(samples, samples.at(-1)?.requests ?? 0)]
  const met = last <= first * limit
  const growth = ((last / first - 1) * 100).toFixed(1)
  console.log(`${met ? 'passed' : 'FAILED'}: ${growth} % after the first million, ${values.limit} % allowed`)
  if (!met) process.exitCode = 1
}

/** Resident memory about that many requests, MiB. */
function around(samples: readonly Sample[], requests: number): number {
  return median(samples.filter(sample => Math.abs(sample.requests - requests) <= window).map(({ mib }) => mib))
}

function samplesText(samples: readonly Sample[], requests: number): string {
  const marks = Array.from({ length: Math.ceil(requests / million) }, (_, index) => (index + 1) * million)
  return table(
    ['million requests', 'resident MiB'],
    marks.map(mark => [String(mark / million), figure(around(samples, mark), 1)]),
  )
}
