import t from 'tap'
import { CallClaims, createClaimMemory } from '../../src/storage/sqlite/claims.ts'
import type { Done, StorageCall, StorageCalls } from '../../src/storage/sqlite/protocol.ts'
import { createCalls } from '../../src/storage/sqlite/thread.ts'
import { orUnavailable, StoreError } from '../../src/storage/store.ts'

/** Calls to a thread that answers only when told to, and that thread's view of the claims. */
function toNobody() {
  const memory = createClaimMemory()
  const posted: { call: StorageCall; answer: (done: Done) => void; fail: (error: Error) => void }[] = []
  const seen = { lost: 0, replies: [] as unknown[] }
  const link = {
    call: (_: keyof StorageCalls, [call]: readonly unknown[]) =>
      new Promise<never>((resolve, fail) =>
        posted.push({ call: call as StorageCall, answer: done => resolve(done as never), fail }),
      ),
  }
  const onLost = () => {
    seen.lost += 1
  }
  const ask = createCalls({ link, claims: new CallClaims(memory), callMs: 100, onLost })
  return {
    posted,
    seen,
    claims: new CallClaims(memory),
    ask: (table: StorageCall['table'], method: string) =>
      ask({ table, method, args: [] }, done => seen.replies.push(done.value)),
  }
}

t.test('a call that a hanging thread has not begun is given up, and never done', async t => {
  const { posted, seen, claims, ask } = toNobody()
  await t.rejects(ask('probe', 'ping'), { name: 'StoreError', message: 'probe.ping took too long; it was not done' })
  const [first] = posted
  t.equal(claims.begin(first!.call.id), false)
  t.equal(seen.lost, 0)
  const next = [ask('probe', 'ping'), ask('probe', 'ping')]
  t.notOk(
    posted.slice(1).some(({ call }) => call.id === first!.call.id),
    'its place is not used before the thread passes it over',
  )
  for (const { fail } of posted) fail(new StoreError('given up'))
  await Promise.allSettled(next)
  ask('probe', 'ping').catch(() => {})
  t.ok(
    posted.slice(0, 3).some(({ call }) => call.id === posted[3]!.call.id),
    'and is used again then',
  )
  posted[3]!.fail(new StoreError('given up'))
})

t.test('a write that a hanging thread has begun is in doubt; a read is not', async t => {
  const { posted, seen, claims, ask } = toNobody()
  const calls = [ask('probe', 'ping'), ask('agents', 'all')]
  for (const { call } of posted) claims.begin(call.id)
  const results = await Promise.allSettled(calls)
  for (const result of results) t.match(result, { reason: { message: /whether it was done is unknown/ } })
  const [write, read] = results.map(result => (result as PromiseRejectedResult).reason)
  t.match(await orUnavailable(Promise.reject(write)), { status: 503, detail: /whether this was recorded is unknown/ })
  t.match(await orUnavailable(Promise.reject(read)), { status: 503, detail: /nothing was done/ })
  t.equal(seen.lost, 0, 'its reply may still come')
  posted[0]!.answer({ value: 'late', changes: [] })
  await Promise.resolve()
  t.strictSame(seen.replies, ['late'], 'and is seen then')
})

t.test('a write to which the thread can no longer reply may have been kept; a read cannot', async t => {
  const { posted, seen, ask } = toNobody()
  const calls = [ask('probe', 'ping'), ask('agents', 'all')]
  for (const { fail } of posted) fail(new StoreError('The storage thread ended', { inDoubt: true }))
  await Promise.allSettled(calls)
  t.equal(seen.lost, 1)
})
