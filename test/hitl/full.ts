/** Threat T45 of SECURITY.md. */

import { openSqliteStore } from '../../src/storage/sqlite/open.ts'
import { code, held, listed, openDesk, reviewer, suspended, verdict } from '../fixtures/hitl.ts'
import t from '../fixtures/tap.ts'

t.test('on a full disk suspensions and verdicts are refused, and nothing is done', async t => {
  const directory = t.testdir()
  const store = await openSqliteStore({ directory, maxPages: 120 })
  t.teardown(() => store.close())
  const desk = await openDesk({ directory, store, settings: { MaxPendingRequests: 100_000 } })
  const id = await suspended(desk)
  for (const size of [9_000, 1_000, 10]) {
    while (code(await desk.queue.suspend(held({ body: 'x'.repeat(size) }))) === undefined);
  }
  t.match(await desk.queue.suspend(held()), { refusal: 'store_unavailable', status: 503 })
  const waiting = (await listed(desk)).length
  const events = desk.events.length
  // Long enough to need a page of its own in the trail.
  const long = { ...verdict(), comment: 'é'.repeat(2_000) }
  t.equal(code(await desk.queue.approve(id, long)), 'store_unavailable')
  t.equal(code(await desk.queue.deny(id, long)), 'store_unavailable')
  t.equal(desk.sent.length, 0)
  t.equal(desk.events.length, events)
  t.equal((await listed(desk)).length, waiting)
  t.match(await desk.queue.get(id, reviewer), { status: 'Pending', approvedBy: [] })
})
