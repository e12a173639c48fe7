/** Threats T01, T36 of SECURITY.md. */

import t from 'tap'
import { isRefusal } from '../../src/base/refusals.ts'
import { agent, code, openDesk, otherAgent, reviewer, secondReviewer, suspended, verdict } from '../fixtures/hitl.ts'
import { testdir } from '../fixtures/testdir.ts'

t.test('a denied request is discarded, with the comment on record', async t => {
  const desk = await openDesk({ directory: testdir(t) })
  t.teardown(() => desk.store.close())
  const id = await suspended(desk)
  const comment = 'not\nthis \u202emonth'
  t.match(await desk.queue.deny(id, { ...verdict(), comment }), { status: 'Denied', comment, decidedBy: 'reviewer-1' })
  t.match(await desk.queue.get(id, agent), {
    status: 'Denied',
    comment: 'not\nthis \\u{202e}month',
    replay: null,
  })
  t.equal(await desk.store.hitl.sealed(id), undefined)
  t.equal(desk.sent.length, 0)
  t.match(desk.events.at(-1), { type: 'denied', hitlId: id, data: { agentId: 'agent-1', by: 'reviewer-1' } })
  const { items } = await desk.store.audit.list({ page: 1, pageSize: 1 })
  t.match(items, [{ action: 'hitl.deny', actor: 'reviewer-1', subject: id, details: { comment, digest: /^\w{64}$/ } }])
})

t.test('a verdict on a verdict gets the outcome on record', async t => {
  const desk = await openDesk({ directory: testdir(t) })
  t.teardown(() => desk.store.close())
  const id = await suspended(desk)
  await desk.queue.deny(id, { ...verdict(), comment: 'no,\nnever\u202e' })
  const comment = 'no,\nnever\\u{202e}'
  const recorded = { hitlId: id, hitlStatus: 'Denied', decidedBy: 'reviewer-1', comment }
  for (const again of [desk.queue.deny(id, verdict(secondReviewer)), desk.queue.approve(id, verdict())]) {
    t.match(await again, { refusal: 'already_decided', status: 409, members: recorded })
  }
  t.equal(desk.sent.length, 0)
})

t.test('of fifty parallel denials one wins', async t => {
  const desk = await openDesk({ directory: testdir(t) })
  t.teardown(() => desk.store.close())
  const id = await suspended(desk)
  const results = await Promise.all(Array.from({ length: 50 }, () => desk.queue.deny(id, verdict())))
  t.equal(results.filter(result => !isRefusal(result)).length, 1)
  t.equal(results.filter(result => code(result) === 'already_decided').length, 49)
})

t.test('nobody decides a request of their own, and the attempt is on record', async t => {
  const desk = await openDesk({ directory: testdir(t) })
  t.teardown(() => desk.store.close())
  const own = { ...reviewer, roles: ['agent', 'admin'] } as const
  const id = await suspended(desk, { agent: own })
  for (const attempt of [desk.queue.approve(id, verdict(own)), desk.queue.deny(id, verdict(own))]) {
    t.match(await attempt, { refusal: 'own_request', status: 403 })
  }
  t.match(await desk.queue.get(id, own), { status: 'Pending' })
  t.equal(desk.sent.length, 0)
  const { totalCount } = await desk.store.audit.list({ page: 1, pageSize: 1 }, { action: 'hitl.refused', subject: id })
  t.equal(totalCount, 2)
})

t.test('FourEyes owner bars reviewers of the same owner too', async t => {
  const desk = await openDesk({ directory: testdir(t), settings: { FourEyes: 'owner' } })
  t.teardown(() => desk.store.close())
  const id = await suspended(desk)
  const sameOwner = { ...otherAgent, roles: ['reviewer'] } as const
  t.equal(code(await desk.queue.approve(id, verdict(sameOwner))), 'own_request')
  t.equal(code(await desk.queue.approve(id, verdict())), undefined)
})

t.test('a comment of 2,000 characters is kept as given, a longer one is refused', async t => {
  const desk = await openDesk({ directory: testdir(t) })
  t.teardown(() => desk.store.close())
  const id = await suspended(desk)
  const long = { ...verdict(), comment: '🎈'.repeat(2_001) }
  for (const attempt of [desk.queue.deny(id, long), desk.queue.approve(id, long)]) {
    t.match(await attempt, { refusal: 'invalid_body', status: 400, errors: [{ field: 'comment' }] })
  }
  const comment = `\u001b[2J"</script>${'🎈'.repeat(1_900)}`
  t.match(await desk.queue.deny(id, { ...verdict(), comment }), { comment })
})

t.test('an unknown and an expired request are not found alike', async t => {
  const desk = await openDesk({ directory: testdir(t) })
  t.teardown(() => desk.store.close())
  const id = await suspended(desk)
  desk.clock.advance(3_600_000)
  for (const attempt of [
    desk.queue.deny(id, verdict()),
    desk.queue.approve(id, verdict()),
    desk.queue.deny('nothing', verdict()),
    desk.queue.approve('nothing', verdict()),
  ]) {
    t.match(await attempt, { refusal: 'not_found', status: 404 })
  }
  t.equal(desk.sent.length, 0)
})

t.test('a rule that asks for two reviewers gets two different ones', async t => {
  const desk = await openDesk({ directory: testdir(t) })
  t.teardown(() => desk.store.close())
  const id = await suspended(desk, { approvals: 2 })
  for (let round = 0; round < 2; round++) {
    t.match(await desk.queue.approve(id, verdict()), { kind: 'waiting', item: { approvedBy: ['reviewer-1'] } })
  }
  t.equal(desk.sent.length, 0)
  t.match(await desk.queue.get(id, reviewer), { status: 'Pending', approvedBy: ['reviewer-1'], approvalsNeeded: 2 })
  t.match(await desk.queue.approve(id, verdict(secondReviewer)), { kind: 'answered', status: 200 })
  t.equal(desk.sent.length, 1)
})

t.test('an agent reads its own requests only, and none of what a rule compared', async t => {
  const desk = await openDesk({ directory: testdir(t) })
  t.teardown(() => desk.store.close())
  const id = await suspended(desk, { rawHeaders: ['X-Name', 'a\u202eb', 'Cookie', 'canary'] })
  t.equal(await desk.queue.get(id, otherAgent), undefined)
  t.equal(await desk.queue.get('nothing', agent), undefined)
  const own = await desk.queue.get(id, agent)
  t.match(own, {
    reason: 'held for review',
    body: '{"amount":250}',
    headers: { 'x-name': 'a\\u{202e}b', cookie: '[REDACTED]' },
  })
  t.notMatch(JSON.stringify(own), /was 250|matched|"rule"|reviewer/)
  for (const role of ['reviewer', 'auditor', 'admin'] as const) {
    t.match(await desk.queue.get(id, { ...otherAgent, roles: [role] }), { rule: 'refunds', matched: [{ actual: 250 }] })
  }
})

t.test('a verdict counts only if its reviewer may still decide when it is claimed', async t => {
  const desk = await openDesk({ directory: testdir(t) })
  t.teardown(() => desk.store.close())
  const id = await suspended(desk)
  // The role was there when the call was let in, and was taken while it waited for the store.
  desk.reviewerOf = () => undefined
  t.equal(code(await desk.queue.approve(id, verdict())), 'forbidden')
  t.equal(code(await desk.queue.deny(id, verdict())), 'forbidden')
  desk.reviewerOf = name => ({ ...agent, id: name })
  t.equal(desk.sent.length, 0)
  t.match(await desk.queue.get(id, reviewer), { status: 'Pending', approvedBy: [] })
})
