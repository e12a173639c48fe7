/** Sends a load with autocannon, in a process of its own: `node autocannon.ts LOAD`, LOAD being JSON. */
import { createHistogram } from 'node:perf_hooks'
import autocannon from 'autocannon'
import type { Load } from './load.ts'

const { request, connections, seconds } = JSON.parse(process.argv[2] ?? '') as Load
const { url, method, headers, body } = request
// Its own percentiles are whole milliseconds.
const latency = createHistogram()
const options: autocannon.Options = {
  url,
  method: method as NonNullable<autocannon.Options['method']>,
  headers: { ...headers },
  connections,
  duration: seconds,
  ...(body === undefined ? {} : { body }),
}
const instance = autocannon(options, (error, result) => {
  if (error !== null && error !== undefined) throw error
  const { requests, duration, errors, timeouts, non2xx } = result
  console.log(
    JSON.stringify({
      requests: requests.total,
      microseconds: duration * 1e6,
      failed: errors + timeouts + non2xx,
      p50: latency.percentile(50),
      p99: latency.percentile(99),
    }),
  )
})
instance.on('response', (_client, _status, _bytes, milliseconds) => {
  latency.record(Math.max(1, Math.round(milliseconds * 1e3)))
})
