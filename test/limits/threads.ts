import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import t from 'tap'
import { Breaker, breakerShape } from '../../src/limits/breaker.ts'
import { createTableMemory, SharedTable } from '../../src/limits/shared-table.ts'
import { createRateLimiter, rateShape } from '../../src/limits/token-bucket.ts'

const seed = new Uint8Array(8).fill(7)

function startTakers(count: number, rounds: number, more = {}) {
  const rates = createTableMemory(rateShape, seed)
  const circuits = createTableMemory(breakerShape(3), seed)
  const start = new Int32Array(new SharedArrayBuffer(8))
  const takers = Array.from({ length: count }, (_, index) => {
    const workerData = { thread: index + 1, rates, circuits, start, rounds, ...more }
    return new Worker(new URL('./child/taker.ts', import.meta.url), { workerData })
  })
  return { rates, circuits, start, takers }
}

/** The table of rates, and its memory, after thread 1 died with the lock. */
async function dieWithLock() {
  const { rates, takers } = startTakers(1, 0, { hold: true })
  const [taker] = takers as [Worker]
  await once(taker, 'message')
  await taker.terminate()
  const table = new SharedTable(rates, rateShape, 0)
  return { rates, table, limiter: createRateLimiter({ requestsPerMinute: 60, burst: 1 }, table) }
}

t.test('a limit holds over threads to the last request, and one probe goes out', async t => {
  const { circuits, rates, start, takers } = startTakers(3, 4_000)
  const breaker = new Breaker(
    { failures: 3, windowMs: 1_000, openMs: 1_000 },
    new SharedTable(circuits, breakerShape(3), 0),
  )
  for (let i = 0; i < 3; i++)
    breaker.release({ origin: 'origin', agentId: 'a', probe: 0, agentProbe: 0 }, 'failure', { steady: () => 1_000 })
  await Promise.all(takers.map(taker => once(taker, 'message')))
  Atomics.store(start, 0, 1)
  const done = takers.map(taker => once(taker, 'message'))
  Atomics.notify(start, 0)
  const counts = (await Promise.all(done)).map(([count]) => count)
  const sum = (what: 'passed' | 'probes') => counts.reduce((all, count) => all + count[what], 0)
  // More than one thread alone could take: at least two took from the same.
  t.equal(sum('passed'), 5_000, JSON.stringify(counts))
  t.equal(sum('probes'), 1)
  t.equal(new SharedTable(rates, rateShape, 0).used, 16_001, 'no key got two places')
})

t.test('a thread that died with the lock is let out', async t => {
  const { rates, table, limiter } = await dieWithLock()
  table.releaseLock(5)
  const waiting = new Worker(
    `const { workerData, parentPort } = require('node:worker_threads')
     parentPort.postMessage(Atomics.load(new Int32Array(workerData), 0))`,
    { eval: true, workerData: rates },
  )
  t.strictSame(await once(waiting, 'message'), [2], 'another one does not free it')
  table.releaseLock(1)
  t.equal(limiter.take('a', 0), 0)
})

t.test('who waits for a thread that has died goes on after a while, although nobody lets it out', async t => {
  const { rates, table, limiter } = await dieWithLock()
  t.equal(limiter.take('a', 0), 0)
  // What the dead one would still do harms nobody.
  table.lock()
  new SharedTable(rates, rateShape, 1).unlock()
  t.equal(new Int32Array(rates)[0], 1, 'the lock is still held')
  table.unlock()
})
