import type { Test } from 'tap'
import { actions, approve, deny, type Engine, entry, get, lapse, sealed, settle, suspend, trail } from './samples.ts'

export function verdicts(t: Test, engine: Engine): void {
  t.test('an approval claims the item for replay and is recorded with digest and attempt', async t => {
    const store = await engine(t)
    await suspend(store, 'h1')
    const result = await approve(store, 'h1', { comment: 'fine' })
    const state = { status: 'Approved', replay: 'inFlight', attempt: 1, leaseUntil: 1_600, approvedBy: ['r1'] }
    t.match(result, { claimed: { id: 'h1', ...state, decidedBy: 'r1', decidedAt: 1_500, comment: 'fine' } })
    t.strictSame(await store.hitl.sealed('h1'), sealed, 'what is sealed stays until the outcome is known')
    const record = (await trail(store)).at(-1)
    t.match(record, { actor: 'r1', action: 'hitl.approve', subject: 'h1' })
    t.strictSame(record?.details, { digest: 'digest h1', approvals: 1, approvalsNeeded: 1, attempt: 1 })
  })

  t.test('a raise counts with the approval that claims the item, and with no other', async t => {
    const store = await engine(t)
    const row = { budget: 'b', holder: 'h', from: 1, until: 2 }
    const raiseOf = (amount: number) => ({
      terms: { ...row, id: `h1 ${amount}`, amount, max: 50 },
      entry: entry('budget.raise', { subject: 'b' }),
    })
    const raised = async () => (await store.spend.find([row])).map(({ raised }) => raised)
    await suspend(store, 'h1', { approvalsNeeded: 2 })
    t.match(await approve(store, 'h1', { raise: raiseOf(20) }), { waiting: { id: 'h1' } })
    t.strictSame(await raised(), [])
    t.equal(await approve(store, 'h1', { reviewer: 'r2', raise: raiseOf(60) }), 'notRaised')
    t.match(await get(store, 'h1'), { status: 'Pending', approvedBy: ['r1'] }, 'as if nobody had approved')
    const both = await Promise.all(
      ['r2', 'r3'].map((reviewer, n) => approve(store, 'h1', { reviewer, raise: raiseOf(30 + n) })),
    )
    t.equal(both.filter(result => typeof result === 'object' && 'claimed' in result).length, 1)
    t.ok([30, 31].includes((await raised())[0]!))
    t.equal((await actions(store)).filter(action => action === 'budget.raise').length, 1)
  })

  t.test('a denial is final and drops what was sealed', async t => {
    const store = await engine(t)
    await suspend(store, 'h1')
    t.match(await deny(store, 'h1'), { denied: { status: 'Denied', decidedBy: 'r1', decidedAt: 1_500, comment: 'no' } })
    t.equal(await store.hitl.sealed('h1'), undefined)
    t.match(await deny(store, 'h1', 'r2'), { lost: { status: 'Denied', decidedBy: 'r1' } })
    t.match(await approve(store, 'h1'), { lost: { status: 'Denied', decidedBy: 'r1' } })
    t.match(await approve(store, 'h1', { resend: true }), { lost: { status: 'Denied' } })
    t.strictSame(await actions(store), ['hitl.suspend', 'hitl.deny'])
    t.equal(await deny(store, 'h2'), 'notFound')
    t.equal(await approve(store, 'h2'), 'notFound')
  })

  t.test('of 50 verdicts at once on an item one wins, and only that one is recorded', async t => {
    const store = await engine(t)
    const ids = Array.from({ length: 20 }, (_, n) => `h${n}`)
    for (const id of ids) await suspend(store, id)
    const results: object[] = []
    // An engine may refuse calls when many wait: one item after the other.
    for (const id of ids) {
      const calls = Array.from({ length: 50 }, (_, n) =>
        n % 2 === 0 ? approve(store, id, { reviewer: `r${n}` }) : deny(store, id, `r${n}`),
      )
      results.push(
        ...(await Promise.all(calls)).map(result => (typeof result === 'string' ? { lost: result } : result)),
      )
    }
    const won = results.filter(result => !('lost' in result))
    t.equal(won.length, ids.length)
    t.equal(results.length - won.length, 49 * ids.length)
    const subjects = (await trail(store))
      .filter(record => record.action !== 'hitl.suspend')
      .map(record => record.subject)
    t.strictSame(subjects.sort(), [...ids].sort())
  })

  t.test('an item that needs two approvals waits for a second reviewer, who counts once', async t => {
    const store = await engine(t)
    await suspend(store, 'h1', { approvalsNeeded: 2 })
    t.match(await approve(store, 'h1'), { waiting: { status: 'Pending', approvedBy: ['r1'], decidedBy: null } })
    t.match(await approve(store, 'h1'), { waiting: { approvedBy: ['r1'] } })
    t.match(await approve(store, 'h1', { reviewer: 'r2' }), { claimed: { approvedBy: ['r1', 'r2'], decidedBy: 'r2' } })
    t.strictSame(await actions(store), ['hitl.suspend', 'hitl.approve', 'hitl.approve'])
  })

  t.test('an outcome is written once and drops what was sealed when it is complete', async t => {
    const store = await engine(t)
    await suspend(store, 'h1')
    await approve(store, 'h1')
    const outcome = { replay: 'completed', responseStatus: 201, sealedResponse: new Uint8Array([7]) } as const
    t.equal(await store.hitl.recordOutcome('h1', 1, outcome, entry('hitl.replay')), true)
    t.match(await get(store, 'h1'), {
      replay: 'completed',
      responseStatus: 201,
      responseStored: true,
      leaseUntil: null,
    })
    t.strictSame(await store.hitl.sealedResponse('h1'), new Uint8Array([7]))
    t.equal(await store.hitl.sealed('h1'), undefined)
    t.equal(await settle(store, 'h1', 1, 'failed'), false)
    t.equal(await store.hitl.release('h1', 1, entry('hitl.release')), false)
    t.match(await approve(store, 'h1'), { lost: { replay: 'completed' } })
    t.match(await approve(store, 'h1', { resend: true }), { lost: { replay: 'completed' } })
    t.match((await trail(store)).at(-1)?.details, { attempt: 1, replay: 'completed', responseStatus: 201 })
  })

  t.test('of a withdrawal and an approval at the same moment one wins, and only that one is on record', async t => {
    const store = await engine(t)
    const withdraw = (id: string) =>
      store.hitl.withdraw(id, { agentId: 'a1', now: 1_100 }, entry('hitl.withdraw', { actor: 'a1', subject: id }))
    await suspend(store, 'h1')
    t.match(await withdraw('h1'), { withdrawn: { status: 'Withdrawn', decidedBy: 'a1', decidedAt: 1_100 } })
    t.match(await approve(store, 'h1'), { lost: { status: 'Withdrawn' } })
    await suspend(store, 'h2')
    t.match(await approve(store, 'h2'), { claimed: { status: 'Approved' } })
    t.match(await withdraw('h2'), { lost: { status: 'Approved', replay: 'inFlight' } })
    const verdicts = (await trail(store)).filter(({ action }) => action !== 'hitl.suspend')
    t.match(
      verdicts.map(({ action }) => action),
      ['hitl.withdraw', 'hitl.approve'],
    )
    t.equal(await store.hitl.sealed('h1'), undefined)
    t.equal(await store.hitl.countPending(1_100), 0)
  })

  t.test('only its agent withdraws a request, and the key of what was withdrawn is free', async t => {
    const store = await engine(t)
    const withdraw = (agentId: string, now = 1_100) =>
      store.hitl.withdraw('h1', { agentId, now }, entry('hitl.withdraw'))
    await suspend(store, 'h1', { idempotencyKey: 'k' })
    t.equal(await withdraw('a2'), 'notFound')
    t.equal(await withdraw('a1', 2_000), 'notFound', 'it has expired')
    t.match(await withdraw('a1'), { withdrawn: { idempotencyKey: 'k' } })
    t.match(await withdraw('a1'), { lost: { status: 'Withdrawn' } })
    t.equal(await store.hitl.keyHolder('a1', 'k', 1_100), undefined)
    t.equal(await suspend(store, 'h2', { idempotencyKey: 'k' }), 'stored')
  })

  t.test('a claim that is released waits again with no approval counted', async t => {
    const store = await engine(t)
    await suspend(store, 'h1')
    await approve(store, 'h1', { comment: 'fine' })
    t.equal(await store.hitl.release('h1', 2, entry('hitl.release')), false, 'not by another attempt')
    t.equal(await store.hitl.release('h1', 1, entry('hitl.release')), true)
    const state = { status: 'Pending', replay: null, attempt: 1, leaseUntil: null, approvedBy: [], decidedBy: null }
    t.match(await get(store, 'h1'), { ...state, decidedAt: null, comment: null })
    t.equal(await settle(store, 'h1', 1, 'completed'), false, 'a released attempt has no outcome')
    t.match(await approve(store, 'h1', { reviewer: 'r2' }), { claimed: { attempt: 2, approvedBy: ['r2'] } })
  })

  t.test('a claim that is released may need more approvals from then on', async t => {
    const store = await engine(t)
    await suspend(store, 'h1')
    await approve(store, 'h1')
    t.equal(await store.hitl.release('h1', 1, entry('hitl.release'), 2), true)
    t.match(await get(store, 'h1'), { status: 'Pending', approvedBy: [], approvalsNeeded: 2 })
    t.match(await store.hitl.pending(1_100), [{ id: 'h1', approvalsNeeded: 2 }])
    t.match(await approve(store, 'h1', { reviewer: 'r2' }), { waiting: { approvedBy: ['r2'] } })
    t.match(await approve(store, 'h1', { reviewer: 'r1' }), { claimed: { approvedBy: ['r2', 'r1'] } })
  })

  for (const replay of ['failed', 'unknown'] as const) {
    t.test(`after ${replay} only a resend claims again, once`, async t => {
      const store = await engine(t)
      await suspend(store, 'h1')
      t.match(await approve(store, 'h1', { resend: true }), { lost: { status: 'Pending' } })
      await approve(store, 'h1')
      t.match(await approve(store, 'h1', { resend: true }), { lost: { replay: 'inFlight' } })
      await settle(store, 'h1', 1, replay)
      t.strictSame(await store.hitl.sealed('h1'), sealed)
      t.match(await approve(store, 'h1', { reviewer: 'r2' }), { lost: { replay } })
      const again = await Promise.all(['r2', 'r3'].map(reviewer => approve(store, 'h1', { reviewer, resend: true })))
      again.sort(one => (typeof one === 'object' && 'claimed' in one ? -1 : 1))
      t.match(again, [{ claimed: { attempt: 2, replay: 'inFlight', decidedBy: 'r1' } }, { lost: { attempt: 2 } }])
      t.equal(await settle(store, 'h1', 1, 'completed'), false, 'the first attempt has lost its claim')
      t.equal(await settle(store, 'h1', 2, 'completed'), true)
      t.match((await trail(store)).at(-2)?.details, { resend: true, attempt: 2, digest: 'digest h1' })
    })

    t.test(`a resend that is released after ${replay} does not forget it`, async t => {
      const store = await engine(t)
      await suspend(store, 'h1')
      await approve(store, 'h1')
      await settle(store, 'h1', 1, replay)
      await approve(store, 'h1', { resend: true })
      t.equal(await store.hitl.release('h1', 2, entry('hitl.release')), true)
      t.match(await get(store, 'h1'), { status: 'Approved', replay, attempt: 2, leaseUntil: null })
      t.match(await approve(store, 'h1', { resend: true }), { claimed: { attempt: 3 } })
    })
  }

  t.test('a replay whose lease ran out is unknown, until its outcome is recorded after all', async t => {
    const store = await engine(t)
    await suspend(store, 'h1')
    await suspend(store, 'h2')
    await approve(store, 'h1', { leaseUntil: 1_600 })
    await approve(store, 'h2', { leaseUntil: 1_601 })
    t.strictSame(await lapse(store, 1_599), [])
    t.strictSame(
      await lapse(store, 1_600, { owner: 'g1', held: ['h1'], over: [] }),
      [],
      'who holds a lease knows better',
    )
    t.strictSame(await lapse(store, 1_600), ['h1'])
    t.strictSame(await lapse(store, 1_600), [])
    const record = (await trail(store)).at(-1)
    t.match(record, { at: 1_600, actor: 'gateway', action: 'hitl.replay', subject: 'h1' })
    const unknown = { outcome: 'unknown', replay: 'unknown', responseStatus: null }
    t.strictSame(record?.details, { attempt: 1, digest: 'digest h1', ...unknown })
    t.match(await get(store, 'h1'), { status: 'Approved', replay: 'unknown' })
    t.equal(await settle(store, 'h1', 1, 'completed'), true)
    t.match(await get(store, 'h1'), { replay: 'completed' })
  })

  t.test('what a gateway knows of its attempts counts for its own claims alone', async t => {
    const store = await engine(t)
    for (const id of ['h1', 'h2', 'h3']) await suspend(store, id)
    for (const [id, owner] of [
      ['h1', 'g1'],
      ['h2', 'g2'],
      ['h3', 'g1'],
    ] as const)
      await approve(store, id, { owner })
    const own = { owner: 'g1', held: ['h1', 'h2'], over: ['h3'] }
    t.strictSame(await lapse(store, 1_599, own), ['h3'], 'before its lease is over in the store')
    t.strictSame(await lapse(store, 1_600, own), ['h2'], 'another gateway has claimed it since')
    await approve(store, 'h3', { owner: 'g2', resend: true, leaseUntil: 1_700 })
    t.strictSame(await lapse(store, 1_650, own), [], 'an attempt of another gateway is not over with the own one')
    t.strictSame((await lapse(store, 1_700, { ...own, held: [] })).toSorted(), ['h1', 'h3'])
  })

  t.test('a lapsed replay can be sent again, and then its first attempt is ignored', async t => {
    const store = await engine(t)
    await suspend(store, 'h1')
    await approve(store, 'h1')
    await lapse(store, 1_600)
    t.match(await approve(store, 'h1', { resend: true, leaseUntil: 1_800 }), { claimed: { attempt: 2 } })
    t.equal(await settle(store, 'h1', 1, 'completed'), false)
    t.strictSame(await lapse(store, 1_800), ['h1'])
  })
}
