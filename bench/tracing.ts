/**
 * What tracing does for one request, in this process alone: `node bench/tracing.ts`. The goals are parts of a hundredth of a
 * request, which ratios of whole requests do not show on a machine that does other things too (compare.ts).
 */

import { isRefusal } from '../src/base/refusals.ts'
import { readFields } from '../src/http/headers.ts'
import { spanListener } from '../src/pipeline/ends/spans.ts'
import { Exchange } from '../src/pipeline/exchange.ts'
import { systemClock } from '../src/runtime/clock.ts'
import { openSpanSink } from '../src/telemetry/tracing/open.ts'
import { Tracing, type TracingSettings } from '../src/telemetry/tracing/tracing.ts'
import { readOptions } from './lib/options.ts'
import { median } from './lib/stats.ts'
import { figure, table } from './lib/table.ts'

const help = `usage: node bench/tracing.ts [options]

  --rounds N     rounds of 20,000 requests of each kind (30)
  --request US   CPU time of a whole request, microseconds, to which it is compared (57)
`

const { values } = readOptions(help, {
  rounds: { type: 'string', default: '30' },
  request: { type: 'string', default: '57' },
})

const usual: TracingSettings = {
  ...{ Ratio: 0, Parent: 'Follow', Keep: ['held', 'refused', 'failed'] },
  ...{ Propagate: 'Given', Baggage: 'Pass' },
}
const raw = [
  'Host',
  '127.0.0.1:7080',
  'Authorization',
  `Bearer ${'x'.repeat(420)}`,
  'Accept',
  '*/*',
  'User-Agent',
  'bench',
]
const sampled = ['traceparent', '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01']

/** What is asked for, its goal as a ratio of whole requests, and the fields of the request. */
const kinds: Readonly<Record<string, readonly [Partial<TracingSettings>, goal: number, fields: readonly string[]]>> = {
  'not recorded': [{}, 1.01, raw],
  'one in a hundred recorded': [{ Ratio: 0.01 }, 1.02, raw],
  'parent that is sampled': [{}, 1.02, [...raw, ...sampled]],
  'announced, not recorded': [{ Propagate: 'Always' }, 1.03, raw],
  'recorded, the queue full': [{ Ratio: 1 }, 1.7, raw],
}
const requests = 20_000

const target = { path: '/items', origin: { host: '127.0.0.1', port: 9_000, scheme: 'http' } }
const decision = { decision: 'Allow', policy: 'bench', rule: null, risk: { score: 0.1 } }

/** An exchange that was answered, as the listeners to its end see it. */
function ended(rawHeaders: readonly string[], fields: object): Exchange {
  const res = { headersSent: true, statusCode: 200 }
  const arrival = { req: { rawHeaders, method: 'GET' }, res, fields, requestId: 'request', addressing: {} }
  const exchange = new Exchange(arrival as never, 5)
  return Object.assign(exchange, {
    agent: { id: 'agent' },
    target,
    decision,
    sentAt: 5.1,
    upstreamStatus: 200,
    ending: 'forwarded',
  })
}

/** CPU nanoseconds for one request, of each round; without `tracing` of what stands around it. */
function measure(fields: readonly string[], tracing?: Tracing): number {
  const read = readFields(fields, '1.1')
  if (isRefusal(read)) throw new Error(read.detail)
  const listener = tracing && spanListener(tracing)
  const rounds = Array.from({ length: Number(values.rounds) }, () => {
    const before = process.cpuUsage()
    for (let count = 0; count < requests; count++) {
      const exchange = ended(fields, read)
      const given = [...fields]
      tracing?.propagate(exchange, target.origin.host, given)
      listener?.ended(exchange, 6)
    }
    const { user, system } = process.cpuUsage(before)
    return ((user + system) / requests) * 1_000
  })
  return median(rounds)
}

const rows = []
for (const [name, [settings, goal, fields]] of Object.entries(kinds)) {
  const sink = await openSpanSink({
    ...{ url: 'http://127.0.0.1:1/v1/traces', headers: [], ca: undefined, queueSize: undefined, instance: 'bench' },
    ...{ count() {}, onFailure() {} },
  })
  const parts = { settings: { ...usual, ...settings }, parentPerSecond: 10, hosts: undefined, sink, clock: systemClock }
  const ns = measure(fields, new Tracing(parts)) - measure(fields)
  rows.push([name, figure(ns), figure(1 + ns / 1_000 / Number(values.request), 4), String(goal)])
}
console.log(table(['request', 'ns', 'ratio', 'goal'], rows))
process.exit()
