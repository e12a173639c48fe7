import t from 'tap'
import { Claims, createClaimMemory } from '../../src/storage/sqlite/claims.ts'
import { PendingCalls } from '../../src/storage/sqlite/pending.ts'
import type { Call } from '../../src/storage/sqlite/protocol.ts'
import { refuseStore } from '../../src/storage/store.ts'

/** Calls to a thread that answers nothing, and that thread's view of the claims. */
function toNobody() {
  const memory = createClaimMemory()
  const posted: Call[] = []
  const seen = { doubts: 0 }
  const pending = new PendingCalls(memory, () => {
    seen.doubts += 1
  })
  const ask = (table: Call['table'], method: string) =>
    pending.add({ table, method, args: [] }, call => void posted.push(call))
  return { pending, posted, seen, claims: new Claims(memory), ask }
}

t.test('a call that a hanging thread has not begun is given up within two seconds, and never done', async t => {
  const { pending, posted, seen, claims, ask } = toNobody()
  const start = performance.now()
  await t.rejects(ask('probe', 'ping'), { name: 'StoreError', message: 'probe.ping took too long; it was not done' })
  t.ok(performance.now() - start < 2_000)
  const [call] = posted
  t.equal(claims.begin(call!.id), false)
  t.equal(seen.doubts, 0)
  t.equal(pending.size, 1, 'its id is not used again before the thread has passed it over')
  pending.settle({ id: call!.id, failure: 'given up' })
  t.equal(pending.size, 0)
})

t.test('a write that a hanging thread has begun is in doubt; a read is not', async t => {
  const { posted, seen, claims, ask } = toNobody()
  const calls = [ask('probe', 'ping'), ask('agents', 'all')]
  for (const { id } of posted) claims.begin(id)
  const results = await Promise.allSettled(calls)
  for (const result of results) t.match(result, { reason: { message: /whether it was done is unknown/ } })
  const [write, read] = results.map(result => (result as PromiseRejectedResult).reason)
  t.match(refuseStore(write), { status: 503, detail: /whether this was recorded is unknown/ })
  t.match(refuseStore(read), { status: 503, detail: /nothing was done/ })
  t.equal(seen.doubts, 1)
})
