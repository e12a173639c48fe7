/**
 * How long a webhook waits for the message about a held request: `node bench/messages.ts`. From the moment at which the gateway
 * holds the request, by its own clock, until the service has the whole message, at a steady rate of requests. Linux, as the
 * others. The exit code is 1 when the goal is missed.
 */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout } from 'node:timers/promises'
import { startGateway } from './lib/gateway.ts'
import { readOptions } from './lib/options.ts'
import { quantile } from './lib/stats.ts'

const help = `usage: node bench/messages.ts [--rate N] [--seconds N]

  --rate N      requests that are held in a second; default 100
  --seconds N   length of the measurement; default 20
`
const { values } = readOptions(help, { rate: { type: 'string' }, seconds: { type: 'string' } })
const [rate, seconds] = [Number(values.rate ?? 100), Number(values.seconds ?? 20)]
/** Longest time at the 99th percentile, milliseconds. */
const goal = 1_000

const delays = new Map<string, number>()
let repeated = 0
const service = createServer((req, res) => {
  const chunks: Buffer[] = []
  req.on('data', chunk => chunks.push(chunk))
  req.on('end', () => {
    const now = Date.now()
    res.writeHead(204).end()
    const { hitlId, at } = JSON.parse(Buffer.concat(chunks).toString())
    if (delays.has(hitlId)) repeated++
    else delays.set(hitlId, now - Date.parse(at))
  })
})
await new Promise<void>(resolve => service.listen(0, '127.0.0.1', resolve))
const { port } = service.address() as AddressInfo

const gateway = await startGateway({
  policies: [{ name: 'holds', default: 'Hitl' }],
  cores: undefined,
  settings: {
    HumanInTheLoop: {
      ...{ MaxPendingRequests: 1_000_000, MaxPendingPercentPerAgent: 100 },
      Webhooks: [{ Url: `http://127.0.0.1:${port}/` }],
    },
  },
})

async function hold(index: number): Promise<void> {
  const answer = await fetch(`${gateway.url}/proxy/http://127.0.0.1:${port}/things/${index}`, {
    method: 'POST',
    headers: { 'Gateway-Authorization': `Bearer ${gateway.token}`, 'Content-Type': 'application/json' },
    body: JSON.stringify({ amount: index }),
  })
  if (answer.status !== 202) throw new Error(`not held: ${answer.status} ${await answer.text()}`)
}

const holds: Promise<void>[] = []
const since = performance.now()
for (let index = 0; index < rate * seconds; index++) {
  const due = since + (index * 1_000) / rate
  if (performance.now() < due) await setTimeout(due - performance.now())
  holds.push(hold(index))
}
await Promise.all(holds)
const tookMs = performance.now() - since
for (let tries = 0; delays.size < holds.length && tries < 600; tries++) await setTimeout(100)

const list = [...delays.values()]
const shown = [0.5, 0.9, 0.99, 1].map(share => `${Math.round(quantile(list, share))} ms`)
const isMet = list.length === holds.length && quantile(list, 0.99) <= goal
process.stdout.write(
  `${holds.length} requests held at ${Math.round((holds.length * 1_000) / tookMs)} a second, ${list.length} messages, ${repeated} of them repeated
from the hold to the message: median ${shown[0]}, p90 ${shown[1]}, p99 ${shown[2]} (goal <= ${goal} ms), longest ${shown[3]}
${isMet ? 'The goal is met.' : 'The goal is missed.'}\n`,
)
await gateway.process.stop()
service.close()
process.exitCode = isMet ? 0 : 1
