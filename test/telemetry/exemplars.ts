import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import t from 'tap'
import { readExemplar, writeExemplar } from '../../src/telemetry/exemplars.ts'
import { exposition } from '../../src/telemetry/exposition.ts'
import { decisionDuration, duration, overhead } from '../../src/telemetry/layout.ts'
import { createMetrics, createMetricsMemory, readTotals } from '../../src/telemetry/metrics.ts'

const traceId = '00f067aa0ba902b7ffffffff80000001'
const words = () => new Int32Array(new SharedArrayBuffer(80))

t.test('what was written is read, and nothing before it', async t => {
  const memory = words()
  t.equal(readExemplar(memory, 1), undefined)
  const exemplar = { traceId, value: 0.25, at: 1_700_000_000_123 }
  writeExemplar(memory, 1, exemplar)
  t.strictSame(readExemplar(memory, 1), exemplar)
})

t.test('one that a thread was writing when it died is not read, until the next one is whole', async t => {
  const memory = words()
  memory[0] = 7
  t.equal(readExemplar(memory, 0), undefined)
  writeExemplar(memory, 0, { traceId, value: 1, at: 2 })
  t.match(readExemplar(memory, 0), { traceId })
})

t.test('none is read that is half of one and half of another while a thread writes', async t => {
  const memory = words()
  const module = JSON.stringify(new URL('../../src/telemetry/exemplars.ts', import.meta.url).href)
  const code = `import { workerData } from 'node:worker_threads'
    const { writeExemplar } = await import(${module})
    for (let n = 0; Atomics.load(workerData, 19) === 0; n++) {
      const digit = n % 10
      writeExemplar(workerData, 0, { traceId: String(digit).repeat(32), value: digit / 3, at: digit + 1 })
      for (let pause = n % 500; pause > 0; pause--) Atomics.load(workerData, 19)
    }`
  const worker = new Worker(new URL(`data:text/javascript,${encodeURIComponent(code)}`), { workerData: memory })
  const ended = once(worker, 'exit')
  t.teardown(() => worker.terminate())
  let torn = 0
  let last: number | undefined
  // Both run whenever another one than before is read.
  for (let news = 0; news < 60; ) {
    const found = readExemplar(memory, 0)
    if (found === undefined) continue
    const digit = found.at - 1
    if (digit !== last) news++
    last = digit
    if (found.traceId !== String(digit).repeat(32) || found.value !== digit / 3) torn++
  }
  Atomics.store(memory, 19, 1)
  await ended
  t.equal(torn, 0)
})

t.test('OpenMetrics shows the latest of all threads in its bucket; the text format has none', async t => {
  const memory = createMetricsMemory(2)
  const [one, other] = [createMetrics(memory, 0), createMetrics(memory, 1)]
  const id = (digit: string) => digit.repeat(32)
  one.exemplify(duration, { traceId: id('a'), value: 0.02, at: 2_000 }, 'plain')
  other.exemplify(duration, { traceId: id('b'), value: 0.021, at: 3_000 }, 'plain')
  other.exemplify(duration, { traceId: id('c'), value: 700, at: 1_000 }, 'stream')
  one.exemplify(overhead, { traceId: id('d'), value: 0.0001, at: 1_500 })
  one.exemplify(overhead, { traceId: id('e'), value: 0.0001, at: 1_400 }, 'plain')
  one.exemplify(decisionDuration, { traceId: id('f'), value: 0.0001, at: 1_500 })
  const page = exposition(readTotals(memory), [], 'openMetrics')
  const examples = page.split('\n').filter(line => line.includes(' # '))
  t.strictSame(examples, [
    `agent_gateway_request_duration_seconds_bucket{kind="plain",le="0.025"} 0 # {trace_id="${id('b')}"} 0.021 3.000`,
    `agent_gateway_request_duration_seconds_bucket{kind="stream",le="+Inf"} 0 # {trace_id="${id('c')}"} 700 1.000`,
    `agent_gateway_overhead_seconds_bucket{le="0.0001"} 0 # {trace_id="${id('d')}"} 0.0001 1.500`,
  ])
  t.notMatch(exposition(readTotals(memory), [], 'text'), 'trace_id')
})
