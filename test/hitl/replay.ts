/** Threats T06, T07, T08, T15 of SECURITY.md. */
import { DatabaseSync } from 'node:sqlite'
import { buffer, text } from 'node:stream/consumers'
import t from 'tap'
import { isRefusal, type Refusal, refuse } from '../../src/base/refusals.ts'
import type { Approved } from '../../src/hitl/model.ts'
import { StoreError } from '../../src/storage/store.ts'
import { eventually } from '../fixtures/gateway.ts'
import { agent, answered, code, openDesk, otherAgent, reviewer, suspended, verdict } from '../fixtures/hitl.ts'
import { openSqliteStore } from '../fixtures/sqlite.ts'
import { testdir } from '../fixtures/testdir.ts'

const everyByte = Uint8Array.from({ length: 256 }, (_, index) => index)

function asAnswer(result: Approved | Refusal) {
  if (isRefusal(result) || result.kind !== 'answered') throw new TypeError(`not answered: ${JSON.stringify(result)}`)
  return result
}

t.test('what was held is what is sent, byte for byte, and the answer is the upstream\u2019s', async t => {
  const desk = await openDesk({ directory: testdir(t), answer: async () => answered('{"ok":true}', 201) })
  t.teardown(() => desk.store.close())
  const rawHeaders = ['X-A', '\u00ff', 'Authorization', 'Bearer secret', 'x-a', '']
  const url = 'https://api.shop.example/v1/%2F?token=secret'
  const id = await suspended(desk, { url, rawHeaders, body: everyByte, method: 'PUT' })
  const answer = asAnswer(await desk.queue.approve(id, { ...verdict(), comment: 'fine' }))
  t.match(desk.sent, [{ request: { method: 'PUT', url, rawHeaders }, context: { hitlId: id, agentId: 'agent-1' } }])
  t.ok(desk.sent[0]!.request.body.every((byte, index) => byte === everyByte[index]))
  t.equal(desk.sent[0]!.request.body.length, 256)
  const digest = desk.events[0]!.data['digest']
  t.equal(answer.status, 201)
  t.strictSame(answer.rawHeaders, ['X-Upstream', 'yes', 'Gateway-Hitl-Id', id, 'Gateway-Hitl-Digest', digest])
  t.equal(await text(answer.body), '{"ok":true}')
  t.match(await desk.queue.get(id, reviewer), {
    status: 'Approved',
    replay: 'completed',
    attempt: 1,
    responseStatus: 201,
    comment: 'fine',
    decidedBy: 'reviewer-1',
  })
  t.equal(await desk.store.hitl.sealed(id), undefined)
  const { items } = await desk.store.audit.list({ page: 1, pageSize: 2 }, { subject: id })
  t.match(items, [
    {
      action: 'hitl.replay',
      actor: 'gateway',
      details: { outcome: 'completed', responseStatus: 201, attempt: 1, digest },
    },
    { action: 'hitl.approve', actor: 'reviewer-1', details: { comment: 'fine', digest } },
  ])
  t.strictSame(
    desk.events.map(event => event.type),
    ['pending', 'approved', 'completed'],
  )
})

t.test('of fifty parallel approvals one sends, and the others get the outcome', async t => {
  const release = Promise.withResolvers<void>()
  const desk = await openDesk({
    directory: testdir(t),
    answer: async () => {
      await release.promise
      return answered()
    },
  })
  t.teardown(() => desk.store.close())
  const id = await suspended(desk)
  const reviewers = Array.from({ length: 50 }, (_, index) => ({ ...reviewer, id: `reviewer-${index}` }))
  const approvals = reviewers.map(by => desk.queue.approve(id, verdict(by)))
  const losers = Promise.all(approvals.map(async approval => (isRefusal(await approval) ? [await approval] : [])))
  // The winner is held at the upstream, so that all others are answered while it is in flight.
  await eventually(() => desk.sent.length, Boolean)
  release.resolve()
  const refused = (await losers).flat()
  t.equal(refused.length, 49)
  t.ok(refused.every(result => code(result) === 'already_decided'))
  t.equal(desk.sent.length, 1)
  await desk.queue.idle()
})

t.test('a request that could not be connected waits again, with no approval counted', async t => {
  const notSent = { kind: 'notSent', refusal: refuse('upstream_failed') } as const
  const desk = await openDesk({ directory: testdir(t), answer: async () => notSent })
  t.teardown(() => desk.store.close())
  const id = await suspended(desk)
  t.match(await desk.queue.approve(id, verdict()), { refusal: 'upstream_failed', status: 502 })
  t.match(await desk.queue.get(id, reviewer), { status: 'Pending', replay: null, approvedBy: [], decidedBy: null })
  t.equal(desk.events.at(-1)?.type, 'released')
  desk.answer = async () => answered()
  asAnswer(await desk.queue.approve(id, verdict()))
  t.equal(desk.sent.length, 2)
})

for (const [title, answer] of [
  ['no answer', async () => ({ kind: 'failed', refusal: refuse('upstream_failed') }) as const],
  ['a fault while sending', async () => Promise.reject(new TypeError('bug'))],
] as const) {
  t.test(`after ${title} the request is failed, and sent again only when that is asked for`, async t => {
    const desk = await openDesk({ directory: testdir(t), answer })
    t.teardown(() => desk.store.close())
    const id = await suspended(desk)
    t.match(await desk.queue.approve(id, verdict()), { refusal: 'upstream_failed', status: 502 })
    t.match(await desk.queue.get(id, reviewer), { status: 'Approved', replay: 'failed', responseStatus: null })
    t.match(await desk.queue.approve(id, verdict()), { refusal: 'already_decided', members: { replay: 'failed' } })
    t.equal(desk.sent.length, 1)
    desk.answer = async () => answered()
    asAnswer(await desk.queue.approve(id, { ...verdict(), resend: true }))
    await desk.queue.idle()
    t.equal(desk.sent.length, 2)
    t.match(await desk.queue.get(id, reviewer), { replay: 'completed', attempt: 2 })
    const { items } = await desk.store.audit.list({ page: 1, pageSize: 10 }, { subject: id })
    t.strictSame(
      items.map(item => item.details['outcome'] ?? item.action),
      ['completed', 'hitl.approve', 'failed', 'hitl.approve', 'hitl.suspend'],
    )
  })
}

t.test('resend is refused while there is nothing to repeat', async t => {
  const desk = await openDesk({ directory: testdir(t) })
  t.teardown(() => desk.store.close())
  const id = await suspended(desk)
  const again = { ...verdict(), resend: true }
  t.equal(code(await desk.queue.approve(id, again)), 'wrong_state')
  asAnswer(await desk.queue.approve(id, verdict()))
  await desk.queue.idle()
  t.equal(code(await desk.queue.approve(id, again)), 'already_decided')
  t.equal(desk.sent.length, 1)
})

for (const [title, jump] of [
  ['ahead', 600_000],
  ['back', -600_000],
] as const) {
  t.test(`the wall clock is set 10 minutes ${title} during a replay: the lease lasts as long as it would`, async t => {
    const alone = 'several gateways go by the clock of the database'
    const desk = await openDesk({ directory: testdir(t), answer: () => new Promise(() => {}), alone })
    t.teardown(() => desk.store.close())
    const id = await suspended(desk)
    void desk.queue.approve(id, verdict())
    await eventually(() => desk.sent.length, Boolean)
    desk.clock.jump(jump)
    desk.clock.advance(149_999)
    await desk.queue.sweep()
    t.match(await desk.queue.get(id, reviewer), { status: 'Approved', replay: 'inFlight' })
    t.equal(code(await desk.queue.approve(id, { ...verdict(), resend: true })), 'already_decided')
    t.equal(desk.sent.length, 1)
    desk.clock.advance(1)
    await desk.queue.sweep()
    t.match(await desk.queue.get(id, reviewer), { status: 'Approved', replay: 'unknown' })
    t.equal(desk.sent.length, 1)
  })
}

t.test('what is given up is unknown on record, whatever its attempt comes to', async t => {
  const desk = await openDesk({
    directory: testdir(t),
    answer: (_, { abandoned }) =>
      new Promise(resolve => {
        abandoned.addEventListener('abort', () => resolve({ kind: 'failed', refusal: refuse('upstream_failed') }))
      }),
  })
  t.teardown(() => desk.store.close())
  const id = await suspended(desk)
  const approval = desk.queue.approve(id, verdict())
  await eventually(() => desk.sent.length, Boolean)
  t.equal(await desk.queue.giveUp(), 1)
  await approval
  await desk.queue.idle()
  t.match(await desk.queue.get(id, reviewer), { status: 'Approved', replay: 'unknown' })
  t.match(await desk.store.audit.list({ page: 1, pageSize: 1 }), { items: [{ action: 'hitl.replay', subject: id }] })
  t.match(desk.events.at(-1), { type: 'unknown', hitlId: id })
  t.equal(await desk.queue.giveUp(), 0)
})

t.test('a crash after the claim leaves the request unknown once its lease is over', async t => {
  const directory = testdir(t)
  const crashing = await openDesk({ directory, answer: () => new Promise(() => {}) })
  const id = await suspended(crashing)
  void crashing.queue.approve(id, verdict())
  await eventually(() => crashing.sent.length, Boolean)
  await crashing.store.close()

  const desk = await openDesk({ directory, clock: crashing.clock })
  t.teardown(() => desk.store.close())
  await desk.queue.sweep()
  t.match(await desk.queue.get(id, reviewer), { status: 'Approved', replay: 'inFlight', attempt: 1 })
  t.match(await desk.queue.approve(id, { ...verdict(), resend: true }), { members: { replay: 'inFlight' } })
  desk.clock.advance(150_000)
  await desk.queue.sweep()
  t.match(await desk.queue.get(id, reviewer), { status: 'Approved', replay: 'unknown', attempt: 1 })
  t.match(desk.events.at(-1), { type: 'unknown', hitlId: id })
  t.match(await desk.queue.approve(id, verdict()), { refusal: 'already_decided', members: { replay: 'unknown' } })
  t.equal(desk.sent.length, 0)
  asAnswer(await desk.queue.approve(id, { ...verdict(), resend: true }))
  t.equal(desk.sent.length, 1)
  await desk.queue.idle()
})

for (const [title, tamper] of [
  ['the digest on record', `update hitl set digest = 'ff'`],
  ['the sealed copy', `update hitl_sealed set request = zeroblob(length(request))`],
] as const) {
  t.test(`a request is not sent when ${title} was changed`, async t => {
    const directory = testdir(t)
    const alone = 'a file of SQLite is changed'
    const before = await openDesk({ directory, alone })
    const id = await suspended(before)
    await before.store.close()
    const database = new DatabaseSync(`${directory}/gateway.db`)
    database.exec(tamper)
    database.close()

    const desk = await openDesk({ directory, alone })
    t.teardown(() => desk.store.close())
    t.match(await desk.queue.approve(id, verdict()), { refusal: 'digest_mismatch', status: 409 })
    t.equal(desk.sent.length, 0)
    t.match(await desk.queue.get(id, reviewer), { status: 'Pending' })
    const { items } = await desk.store.audit.list({ page: 1, pageSize: 1 })
    t.match(items, [{ action: 'hitl.digestMismatch', actor: 'reviewer-1', subject: id }])
  })
}

t.test('a request of an agent that may not call any more is not sent', async t => {
  const desk = await openDesk({ directory: testdir(t) })
  t.teardown(() => desk.store.close())
  const id = await suspended(desk)
  desk.problem = () => refuse('agent_revoked')
  t.match(await desk.queue.approve(id, verdict()), { refusal: 'agent_revoked', status: 403 })
  t.equal(desk.sent.length, 0)
  t.match(await desk.queue.get(id, reviewer), { status: 'Pending' })
  t.match(await desk.queue.deny(id, verdict()), { status: 'Denied' })
})

t.test('a revocation between the claim and the sending stops the sending', async t => {
  const desk = await openDesk({ directory: testdir(t), alone: 'the event of its own claim reaches a gateway at once' })
  t.teardown(() => desk.store.close())
  const id = await suspended(desk)
  desk.log.subscribe(event => {
    if (event.type === 'approved') desk.problem = () => refuse('agent_revoked')
  })
  t.equal(code(await desk.queue.approve(id, verdict())), 'agent_revoked')
  t.equal(desk.sent.length, 0)
  t.match(await desk.queue.get(id, reviewer), { status: 'Pending', approvedBy: [] })
})

t.test('a reviewer that goes away stops neither the replay nor its record', async t => {
  const desk = await openDesk({ directory: testdir(t) })
  t.teardown(() => desk.store.close())
  const id = await suspended(desk)
  asAnswer(await desk.queue.approve(id, verdict())).body.destroy()
  await desk.queue.idle()
  t.match(await desk.queue.get(id, reviewer), { replay: 'completed', responseStored: true })
})

t.test('an answer that breaks off is a failed attempt, with the status it began with', async t => {
  async function* broken() {
    yield Buffer.from('half')
    throw new TypeError('reset')
  }
  const desk = await openDesk({ directory: testdir(t), answer: async () => answered(broken()) })
  t.teardown(() => desk.store.close())
  const id = await suspended(desk)
  const { body } = asAnswer(await desk.queue.approve(id, verdict()))
  await t.rejects(buffer(body))
  await desk.queue.idle()
  t.match(await desk.queue.get(id, reviewer), { replay: 'failed', responseStatus: 200, responseStored: false })
})

t.test('the agent, and nobody else, gets the answer that was kept', async t => {
  async function* chunks() {
    yield everyByte
    yield everyByte
  }
  const desk = await openDesk({ directory: testdir(t), answer: async () => answered(chunks(), 418) })
  t.teardown(() => desk.store.close())
  const id = await suspended(desk)
  t.equal(await desk.queue.answer(id, agent), undefined)
  asAnswer(await desk.queue.approve(id, verdict()))
  await desk.queue.idle()
  const answer = await desk.queue.answer(id, agent)
  t.match(answer, { status: 418, rawHeaders: ['X-Upstream', 'yes'] })
  t.ok(Buffer.concat([everyByte, everyByte]).equals(answer!.body))
  for (const other of [otherAgent, reviewer]) t.equal(await desk.queue.answer(id, other), undefined)
  desk.clock.advance(86_400_001)
  await desk.queue.sweep()
  t.equal(await desk.queue.answer(id, agent), undefined)
  t.equal(await desk.queue.get(id, agent), undefined)
})

t.test('an answer over the cap reaches the reviewer whole and is not kept', async t => {
  const desk = await openDesk({
    directory: testdir(t),
    answer: async () => answered('x'.repeat(101)),
    settings: { MaxStoredResponseBytes: 100 },
  })
  t.teardown(() => desk.store.close())
  const id = await suspended(desk)
  t.equal((await text(asAnswer(await desk.queue.approve(id, verdict())).body)).length, 101)
  await desk.queue.idle()
  t.match(await desk.queue.get(id, agent), { replay: 'completed', responseStatus: 200, responseStored: false })
  t.equal(await desk.queue.answer(id, agent), undefined)
})

t.test('a store that fails before the claim lets nothing out', async t => {
  const desk = await openDesk({ directory: testdir(t) })
  const id = await suspended(desk)
  await desk.store.close()
  t.equal(code(await desk.queue.approve(id, verdict())), 'store_unavailable')
  t.equal(code(await desk.queue.deny(id, verdict())), 'store_unavailable')
  t.equal(desk.sent.length, 0)
  t.equal(desk.events.length, 1, 'nobody is told of a verdict')
})

t.test('an outcome that cannot be recorded is reported, and the reviewer gets the answer all the same', async t => {
  const desk = await openDesk({ directory: testdir(t) })
  const id = await suspended(desk)
  desk.answer = async () => {
    await desk.store.close()
    return answered('done')
  }
  t.equal(await text(asAnswer(await desk.queue.approve(id, verdict())).body), 'done')
  await desk.queue.idle()
  t.match(desk.reports, ['the outcome of an approved request could not be recorded'])
})

/** A method of the storage that fails twice before it works. */
function awayTwice<A extends readonly unknown[], R>(method: (...args: A) => Promise<R>) {
  let failing = 2
  return (...args: A): Promise<R> => (failing-- > 0 ? Promise.reject(new StoreError('away')) : method(...args))
}

t.test('a request that was not sent waits again, also when the store is away at first', async t => {
  const own = await openSqliteStore({ directory: testdir(t) })
  t.teardown(() => own.close())
  const release = awayTwice(own.hitl.release)
  const answer = async () => ({ kind: 'notSent', refusal: refuse('circuit_open') }) as const
  const desk = await openDesk({ directory: '', answer, store: { ...own, hitl: { ...own.hitl, release } } })
  const id = await suspended(desk)
  t.equal(code(await desk.queue.approve(id, verdict())), 'circuit_open')
  const put = await eventually(
    () => own.hitl.brief(id, desk.clock.now()),
    item => item?.status === 'Pending',
  )
  t.match(put, { status: 'Pending', replay: null })
  t.match(desk.reports, ['an approved request that was not sent could not be put back'], 'reported once')
})

t.test(
  'an outcome that cannot be recorded at once is recorded when the store is back before the lease ends',
  async t => {
    const own = await openSqliteStore({ directory: testdir(t) })
    t.teardown(() => own.close())
    const recordOutcome = awayTwice(own.hitl.recordOutcome)
    const desk = await openDesk({ directory: '', store: { ...own, hitl: { ...own.hitl, recordOutcome } } })
    const id = await suspended(desk)
    await text(asAnswer(await desk.queue.approve(id, verdict())).body)
    const recorded = await eventually(
      () => own.hitl.brief(id, desk.clock.now()),
      item => item?.replay === 'completed',
    )
    t.match(recorded, { status: 'Approved', replay: 'completed', responseStatus: 200 })
    t.match(desk.reports, ['the outcome of an approved request could not be recorded'], 'reported once')
    t.equal(desk.sent.length, 1)
    await eventually(
      () => desk.events.map(({ type }) => type),
      types => types.includes('completed'),
    )
  },
)
