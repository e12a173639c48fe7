/** A thread that takes from the tables of its parent, as fast as it can. */
import { parentPort, workerData } from 'node:worker_threads'
import { Breaker, breakerShape } from '../../../src/limits/breaker.ts'
import { SharedTable } from '../../../src/limits/shared-table.ts'
import { createRateLimiter, rateShape } from '../../../src/limits/token-bucket.ts'

const { thread, rates, circuits, start, rounds, hold } = workerData
const rateTable = new SharedTable(rates, rateShape, thread)
if (hold === true) {
  rateTable.lock()
  parentPort?.postMessage('held')
  Atomics.wait(start, 1, 0)
}
const limiter = createRateLimiter({ requestsPerMinute: 1, burst: 5_000 }, rateTable)
const settings = { failures: 3, windowMs: 1_000, openMs: 1_000 }
const breaker = new Breaker(settings, new SharedTable(circuits, breakerShape(3), thread))
const got = { passed: 0, probes: 0 }
parentPort?.postMessage('ready')
Atomics.wait(start, 0, 0)
for (let round = 0; round < rounds; round++) {
  // Many keys come up in both threads at the same moment, and one is taken from all the time.
  if (limiter.take('one', 0) === 0) got.passed += 1
  for (let i = 0; i < 4; i++) limiter.take(`key-${round}-${i}`, 0)
  const permit = breaker.acquire('origin', 'a', { steady: () => 2_000 })
  if (typeof permit === 'object' && permit.agentProbe > 0) got.probes += 1
}
parentPort?.postMessage(got)
