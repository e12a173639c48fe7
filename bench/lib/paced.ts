/**
 * Offers so many requests a second, whatever the answers take: `node paced.ts LOAD`, LOAD being JSON with perSecond.
 * autocannon sends its share of each second at once, and wrk knows no pace. A latency counts from the millisecond
 * in which the request was due, so that waiting for a free connection is part of it.
 */
import { createHistogram } from 'node:perf_hooks'
import { type Exchanges, openExchanges } from './exchanges.ts'
import type { Load } from './load.ts'

const { request, connections, seconds, perSecond } = JSON.parse(process.argv[2] ?? '') as Load & { perSecond: number }

const latency = createHistogram()
/** When requests were due that no connection was free for. */
const waiting: number[] = []
let answered = 0
let failed = 0

const idle: Exchanges[] = await openExchanges(request, connections, (exchanges, good) => {
  if (good) answered += 1
  else failed += 1
  latency.record(Math.max(1, Math.round((performance.now() - exchanges.due) * 1e3)))
  const due = waiting.shift()
  if (due === undefined) idle.push(exchanges)
  else send(exchanges, due)
})

/** Connections take turns, so that none stands idle for so long that it is closed. */
function offer(due: number): void {
  const exchanges = idle.shift()
  if (exchanges === undefined) waiting.push(due)
  else send(exchanges, due)
}

function send(exchanges: Exchanges, due: number): void {
  exchanges.due = due
  exchanges.send()
}

const start = performance.now()
let offered = 0
const timer = setInterval(() => {
  const elapsed = performance.now() - start
  if (elapsed > seconds * 1e3) finish()
  for (const due = Math.floor((elapsed * perSecond) / 1e3); offered < due; offered++) {
    offer(start + (offered * 1e3) / perSecond)
  }
}, 1)

function finish(): void {
  clearInterval(timer)
  const microseconds = Math.round((performance.now() - start) * 1e3)
  const [p50, p99] = [latency.percentile(50), latency.percentile(99)]
  process.stdout.write(`${JSON.stringify({ requests: answered, microseconds, failed, p50, p99 })}\n`, () =>
    process.exit(),
  )
}
