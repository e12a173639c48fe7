import type { Test } from 'tap'
import {
  actions,
  approve,
  deny,
  type Engine,
  entry,
  get,
  pending,
  roomy,
  sealed,
  settle,
  suspend,
  trail,
} from './samples.ts'

const waits = {
  status: 'Pending',
  replay: null,
  attempt: 0,
  leaseUntil: null,
  approvedBy: [],
  decidedBy: null,
  decidedAt: null,
  comment: null,
  responseStatus: null,
  responseStored: false,
}

export function queue(t: Test, engine: Engine): void {
  t.test('a suspended request reads back whole, and its sealed bytes byte for byte', async t => {
    const store = await engine(t)
    t.equal(await suspend(store, 'h1', { idempotencyKey: 'k' }), 'stored')
    const { summary: _, call: _____, ...whole } = pending('h1', { idempotencyKey: 'k' })
    const { headers: __, body: ___, places: ____, ...brief } = whole
    const { responseStored: ______, ...state } = waits
    t.strictSame(await store.hitl.brief('h1', 1_999), { ...brief, ...state })
    t.strictSame(await store.hitl.get('h1', 1_999), { ...whole, ...waits })
    t.strictSame(await store.hitl.sealed('h1'), sealed)
    t.equal(await store.hitl.sealedResponse('h1'), undefined)
    t.strictSame(await actions(store), ['hitl.suspend'])
  })

  t.test('an expired or unknown item is not there', async t => {
    const store = await engine(t)
    await suspend(store, 'h1')
    t.equal(await store.hitl.get('h1', 2_000), undefined)
    t.equal(await store.hitl.brief('h1', 2_000), undefined)
    t.equal(await store.hitl.get('h2', 1_500), undefined)
    t.equal(await store.hitl.sealed('h2'), undefined)
    t.equal(await store.hitl.countPending(1_999), 1)
    t.equal(await store.hitl.countPending(2_000), 0)
    t.strictSame(await store.hitl.pending(2_000), [])
    t.equal(await approve(store, 'h1', { now: 2_000 }), 'notFound')
    t.equal(await deny(store, 'h1', 'r1', 2_000), 'notFound')
  })

  t.test('the list is oldest first, of summaries, and filtered', async t => {
    const store = await engine(t)
    await suspend(store, 'h2', { createdAt: 1_001 })
    await suspend(store, 'h1', { createdAt: 1_001, rule: null })
    await suspend(store, 'h3', { agentId: 'a2', url: 'http://other.example/' })
    await suspend(store, 'h4')
    await deny(store, 'h4')
    const all = await store.hitl.pending(1_500)
    t.strictSame(
      all.map(item => item.id),
      ['h3', 'h1', 'h2'],
    )
    t.strictSame(all[2], {
      id: 'h2',
      agentId: 'a1',
      createdAt: 1_001,
      expiresAt: 2_000,
      approvedBy: [],
      approvalsNeeded: 1,
      summary: '{"id":"h2"}',
    })
    const ids = async (filter: Parameters<typeof store.hitl.pending>[1]) =>
      (await store.hitl.pending(1_500, filter)).map(item => item.id)
    t.strictSame(await ids({ agentId: 'a2' }), ['h3'])
    t.strictSame(await ids({ host: 'api.Example' }), ['h1', 'h2'])
    t.strictSame(await ids({ rule: 'orders', host: 'api.example' }), ['h2'])
    t.strictSame(await ids({ limit: 2 }), ['h3', 'h1'])
    t.strictSame(await ids({ after: all[0] }), ['h1', 'h2'])
    t.strictSame(await ids({ after: all[1], limit: 1 }), ['h2'])
    t.strictSame(await ids({ after: all[2] }), [])
  })

  t.test('both limits hold exactly, also for requests that come at once', async t => {
    const store = await engine(t)
    const limits = { ...roomy, maxPending: 5, maxPendingOfAgent: 3 }
    const agents = ['a1', 'a1', 'a1', 'a1', 'a2', 'a2', 'a3', 'a3']
    const results = await Promise.all(
      agents.map((agentId, n) =>
        store.hitl.insert(pending(`h${n}`, { agentId }), sealed, limits, entry('hitl.suspend')),
      ),
    )
    t.equal(results.filter(result => result === 'stored').length, 5)
    t.ok(results.every(result => result === 'stored' || result === 'queueFull' || result === 'agentQueueFull'))
    const held = Object.groupBy(await store.hitl.pending(1_500), ({ agentId }) => agentId)
    t.ok((held['a1'] ?? []).length <= 3)
    t.equal((await actions(store)).length, 5, 'what was refused is not recorded as suspended')
  })

  t.test('expired and decided items take no room', async t => {
    const store = await engine(t)
    const limits = { ...roomy, maxPending: 1, maxPendingOfAgent: 1 }
    const insert = (id: string, createdAt: number) =>
      store.hitl.insert(pending(id, { createdAt, expiresAt: createdAt + 10 }), sealed, limits, entry('hitl.suspend'))
    t.equal(await insert('h1', 1_000), 'stored')
    t.equal(await insert('h2', 1_009), 'queueFull')
    t.equal(await insert('h3', 1_010), 'stored')
    await deny(store, 'h3', 'r1', 1_011)
    t.equal(await insert('h4', 1_012), 'stored')
  })

  t.test('an item takes room while it is pending, and again when its claim is released', async t => {
    const store = await engine(t)
    const limits = { ...roomy, maxPending: 2, maxPendingOfAgent: 1 }
    const insert = (id: string, agentId: string) =>
      store.hitl.insert(pending(id, { agentId, approvalsNeeded: 2 }), sealed, limits, entry('hitl.suspend'))
    t.equal(await insert('h1', 'a1'), 'stored')
    t.equal(await insert('h2', 'a2'), 'stored')
    await approve(store, 'h1')
    t.equal(await insert('h3', 'a3'), 'queueFull', 'one approval of two')
    await approve(store, 'h1', { reviewer: 'r2' })
    t.equal(await insert('h3', 'a3'), 'stored')
    t.equal(await store.hitl.release('h1', 1, entry('hitl.release')), true)
    await deny(store, 'h2')
    t.equal(await insert('h4', 'a2'), 'queueFull')
    await deny(store, 'h3')
    t.equal(await insert('h4', 'a1'), 'agentQueueFull')
    await approve(store, 'h1')
    await approve(store, 'h1', { reviewer: 'r2' })
    await settle(store, 'h1', 2, 'failed')
    await approve(store, 'h1', { resend: true })
    await store.hitl.release('h1', 3, entry('hitl.release'))
    t.equal(await insert('h4', 'a1'), 'stored', 'a resend that is released is not pending')
  })

  t.test('an idempotency key of one agent names one item until that is gone', async t => {
    const store = await engine(t)
    await suspend(store, 'h1', { idempotencyKey: 'k' })
    t.strictSame(await suspend(store, 'h2', { idempotencyKey: 'k' }), { existing: await store.hitl.brief('h1', 1_500) })
    t.equal(await suspend(store, 'h3', { idempotencyKey: 'k', agentId: 'a2' }), 'stored')
    await deny(store, 'h1')
    t.match(await suspend(store, 'h4', { idempotencyKey: 'k' }), { existing: { id: 'h1', status: 'Denied' } })
    await store.hitl.prune(1_501, 10)
    t.equal(await suspend(store, 'h5', { idempotencyKey: 'k' }), 'stored')
    t.equal(await suspend(store, 'h6', { idempotencyKey: 'k', createdAt: 2_000, expiresAt: 3_000 }), 'stored')
    t.equal(await store.hitl.get('h5', 1_500), undefined, 'an expired holder gives way')
    t.strictSame((await actions(store)).slice(-2), ['hitl.expire', 'hitl.suspend'])
  })

  t.test('expiry takes the oldest first, up to the limit, with an audit entry each', async t => {
    const store = await engine(t)
    for (const [id, expiresAt] of [
      ['h1', 1_300],
      ['h2', 1_200],
      ['h3', 1_100],
      ['h4', 9_000],
    ] as const)
      await suspend(store, id, { expiresAt })
    await approve(store, 'h3', { now: 1_050 })
    t.strictSame(await store.hitl.expire(1_300, 1), ['h2'])
    t.strictSame(await store.hitl.expire(1_300, 10), ['h1'], 'what was decided does not expire')
    t.strictSame(await store.hitl.expire(1_300, 10), [])
    t.equal(await store.hitl.sealed('h1'), undefined)
    const record = (await trail(store)).at(-1)
    t.match(record, { at: 1_300, actor: 'gateway', action: 'hitl.expire', subject: 'h1', requestId: null })
    t.strictSame(record?.details, { agentId: 'a1', digest: 'digest h1' })
  })

  t.test('the history has what does not wait, latest first, and is filtered and cut into pages', async t => {
    const store = await engine(t)
    for (const id of ['h1', 'h2', 'h3', 'h4']) await suspend(store, id, { rule: id })
    await suspend(store, 'h5', { expiresAt: 1_400, agentId: 'a2' })
    await deny(store, 'h1', 'r1', 1_300)
    await approve(store, 'h2', { now: 1_350 })
    await settle(store, 'h2', 1, 'failed')
    await store.hitl.withdraw('h3', { agentId: 'a1', now: 1_500 }, entry('hitl.withdraw'))
    t.strictSame((await store.hitl.history({ page: 1, pageSize: 9 })).totalCount, 3, 'h5 is not swept yet')
    await store.hitl.expire(1_400, 9)
    const ids = async (filter?: Parameters<typeof store.hitl.history>[1], page = 1, pageSize = 9) =>
      (await store.hitl.history({ page, pageSize }, filter)).items.map(({ id }) => id)
    t.strictSame(await ids(), ['h3', 'h5', 'h2', 'h1'])
    t.strictSame(await ids({}, 2, 3), ['h1'])
    t.strictSame(await ids({ statuses: ['Denied', 'Expired'] }), ['h5', 'h1'])
    t.strictSame(await ids({ replay: 'failed' }), ['h2'])
    t.strictSame(await ids({ agentId: 'a2' }), ['h5'])
    t.strictSame(await ids({ rule: 'h1', host: 'API.example' }), ['h1'])
    const { items } = await store.hitl.history({ page: 1, pageSize: 9 }, { statuses: ['Denied'] })
    t.match(items, [{ status: 'Denied', decidedBy: 'r1', decidedAt: 1_300, comment: 'no', approvedBy: [], attempt: 0 }])
    const { ends, isWhole } = await store.hitl.ends(1_350)
    t.ok(isWhole)
    t.match(ends, [
      { status: 'Withdrawn', decidedBy: 'a1', createdAt: 1_000, decidedAt: 1_500 },
      { status: 'Expired', decidedAt: 1_400 },
      { status: 'Approved', decidedAt: 1_350 },
    ])
    t.equal(await store.hitl.oldestPending(1_500), 1_000)
    t.equal(await store.hitl.oldestPending(2_000), undefined)
    t.equal(await store.hitl.prune(1_400, 9), 2, 'what expired is pruned like what was decided')
  })

  t.test('more time is given to what waits, once, and only more', async t => {
    const store = await engine(t)
    await suspend(store, 'h1')
    const extend = (expiresAt: number, now = 1_500) =>
      store.hitl.extend('h1', { now, expiresAt }, entry('hitl.extend', { subject: 'h1' }))
    const both = await Promise.all([extend(3_000), extend(3_000)])
    t.strictSame(both.map(result => Object.keys(result)).sort(), [['extended'], ['lost']])
    t.match(await extend(2_500), { lost: { expiresAt: 3_000 } })
    t.equal((await store.hitl.get('h1', 2_999))?.expiresAt, 3_000)
    t.strictSame((await actions(store)).filter(action => action === 'hitl.extend').length, 1)
    t.equal(await extend(9_000, 3_000), 'notFound', 'what has expired stays so')
    await deny(store, 'h1', 'r1', 2_000)
    t.match(await extend(9_000), { lost: { status: 'Denied' } })
  })

  t.test('pruning removes old decided items, never one whose replay is in flight', async t => {
    const store = await engine(t)
    for (const id of ['h1', 'h2', 'h3', 'h4']) await suspend(store, id)
    await approve(store, 'h1')
    await approve(store, 'h2')
    await settle(store, 'h2', 1, 'completed')
    await deny(store, 'h3', 'r1', 1_501)
    t.equal(await store.hitl.prune(1_500, 10), 0)
    t.equal(await store.hitl.prune(9_999, 1), 1)
    t.equal(await store.hitl.prune(9_999, 10), 1)
    t.equal(await store.hitl.prune(9_999, 10), 0)
    t.strictSame([(await get(store, 'h1')).replay, (await get(store, 'h4')).status], ['inFlight', 'Pending'])
  })

  t.test('a thousand items are suspended, fifty at once', async t => {
    const store = await engine(t)
    // The store gives up what takes longer than 1.5 s, which a thousand at once may on a busy machine.
    for (let first = 0; first < 1_000; first += 50) {
      const ids = Array.from({ length: 50 }, (_, n) => `h${first + n}`)
      const results = await Promise.all(ids.map(id => store.hitl.insert(pending(id), sealed, roomy, entry('s'))))
      t.ok(results.every(result => result === 'stored'))
    }
    t.equal((await store.hitl.pending(1_500)).length, 1_000)
  })

  t.test('a record with the same repeat digest joins a pending item, until that one is closed to others', async t => {
    const store = await engine(t)
    t.equal(await suspend(store, 'i1', { repeatDigest: 'same' }), 'stored')
    t.match(await suspend(store, 'i2', { repeatDigest: 'same' }), { existing: { id: 'i1' } })
    t.equal(await suspend(store, 'i3', { repeatDigest: 'other' }), 'stored')
    await store.hitl.unjoin('i1')
    t.equal(await suspend(store, 'i4', { repeatDigest: 'same' }), 'stored')
  })
}
