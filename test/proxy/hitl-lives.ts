import { createHash } from 'node:crypto'
import t from 'tap'
import { createClock } from '../fixtures/clock.ts'
import { startReview } from '../fixtures/review.ts'
import { testdir } from '../fixtures/testdir.ts'

t.test('what was held is approved after a restart, as it was', async t => {
  const directory = testdir(t)
  const before = await startReview(t, { directory })
  const { origin, bot, reviewer } = before
  const id = await before.hold('/things', { body: 'kept over the restart', headers: { 'X-Note': 'kept' } })
  await before.close()
  const after = await startReview(t, { directory, origin })
  t.equal(origin.seen.length, 0)
  t.match(await (await after.call('GET', `/hitl/${id}`, { token: bot.token })).json(), { status: 'Pending' })
  const approved = await after.approve(id, {}, reviewer.token)
  t.strictSame({ status: approved.status, text: await approved.text() }, { status: 200, text: 'hello from upstream' })
  t.match(origin.seen, [{ method: 'POST', headers: { 'x-note': 'kept' }, body: Buffer.from('kept over the restart') }])
  t.equal(origin.seen.length, 1)
  const answer = await after.call('GET', `/hitl/${id}/response`, { token: bot.token })
  t.equal(await answer.text(), 'hello from upstream')
})

t.test('what was held is approved after the signing secret was rotated, as it was', async t => {
  const directory = testdir(t)
  const [old, next, sealing] = ['a', 'b', 'c'].map(name => createHash('sha256').update(name).digest('base64'))
  const rotated = (Secret: string, PreviousSecrets: readonly string[], more: object = {}) => ({
    Security: { AgentAuth: { TokenIssuance: { Secret, PreviousSecrets } }, ...more },
  })
  const before = await startReview(t, { directory, config: rotated(old!, []) })
  const { origin, bot } = before
  const [first, second] = [await before.hold('/1', { body: 'one' }), await before.hold('/2', { body: 'two' })]
  await before.close()
  const during = await startReview(t, { directory, origin, config: rotated(next!, [old!]) })
  t.match(await (await during.call('GET', `/hitl/${first}`)).json(), { pending: { body: 'one' } })
  t.equal((await during.approve(first)).status, 200)
  await during.close()
  const config = rotated(next!, [old!], { Sealing: { Secret: sealing } })
  const after = await startReview(t, { directory, origin, config })
  t.equal((await after.approve(second)).status, 200)
  t.equal((await after.call('GET', `/hitl/${first}/response`, { token: bot.token })).status, 200)
  await after.close()
  t.strictSame(
    origin.seen.map(({ body }) => body.toString()),
    ['one', 'two'],
  )
})

t.test('a request that nobody decided is gone: every read and verdict is 404', async t => {
  const clock = createClock(Date.now())
  const review = await startReview(t, { clock, config: { HumanInTheLoop: { TimeoutSeconds: 60 } } })
  const { bot, call, approve, deny, origin } = review
  const id = await review.hold('/things')
  clock.advance(60_000)
  const statuses = [
    await call('GET', `/hitl/status/${id}`, { token: bot.token }),
    await call('GET', `/hitl/${id}`),
    await call('GET', `/hitl/${id}/response`, { token: bot.token }),
    await approve(id),
    await deny(id),
  ]
  for (const answer of statuses) t.match(await answer.json(), { status: 404, code: 'not_found' })
  t.strictSame(await (await call('GET', '/hitl')).json(), [])
  t.equal(origin.seen.length, 0)
})

t.test('when the queue is full the next request is 429, and nothing of it is kept', async t => {
  const review = await startReview(t, {
    config: { HumanInTheLoop: { MaxPendingRequests: 4, MaxPendingPercentPerAgent: 50 } },
  })
  const { newBot, hold, origin, waiting, proxy, approve } = review
  const [first, second, third] = [review.bot, await newBot(), await newBot()]
  const refused = async (token: string) => {
    const answer = await proxy(token, `${origin.url}/things`, { method: 'POST', body: 'x' })
    t.match(await answer.json(), { status: 429, code: 'hitl_queue_full' })
    t.match(answer.headers.get('retry-after'), /^\d+$/)
    return review.log.findLast(({ message }) => message === 'a limit was reached')?.limit
  }
  const ids = [await hold('/1', { bot: first }), await hold('/2', { bot: first })]
  t.equal(await refused(first.token), 'agent_hitl_queue')
  await hold('/3', { bot: second })
  await hold('/4', { bot: second })
  t.equal(await refused(third.token), 'hitl_queue')
  t.equal((await waiting(third, 0)).length, 0)
  await (await approve(ids[0]!)).text()
  await hold('/5', { bot: third })
  t.equal(origin.seen.length, 1)
})

t.test('what an agent holds and takes back fills its share of the storage, and no share of others', async t => {
  const review = await startReview(t, {
    config: {
      HumanInTheLoop: { MaxStoredBodyBytes: 100_000, MaxStoredBytes: 1_000_000, MaxPendingPercentPerAgent: 50 },
    },
  })
  const { newBot, hold, origin, proxy, call } = review
  const [first, second] = [review.bot, await newBot()]
  const body = 'x'.repeat(90_000)
  const refused = async (token: string) => {
    const answer = await proxy(token, `${origin.url}/things`, { method: 'POST', body })
    t.match(await answer.json(), { status: 429, code: 'hitl_storage_full' })
    t.match(answer.headers.get('retry-after'), /^\d+$/)
    return review.log.findLast(({ message }) => message === 'a limit was reached')?.limit
  }
  const id = await hold('/1', { bot: first, body })
  await hold('/2', { bot: first, body })
  t.equal(await refused(first.token), 'agent_hitl_bytes')
  const withdrawn = await call('DELETE', `/hitl/${id}`, { token: first.token })
  t.equal(withdrawn.status, 200)
  await hold('/3', { bot: first, body })
  t.equal(await refused(first.token), 'agent_hitl_bytes')
  await hold('/4', { bot: second, body })
  await hold('/5', { bot: second, body })
  t.equal(await refused((await newBot()).token), 'hitl_bytes')
  t.equal(origin.seen.length, 0)
})

t.test('a body longer than may be held is 413, and one as long as may be is held', async t => {
  const review = await startReview(t, { config: { HumanInTheLoop: { MaxStoredBodyBytes: 100 } } })
  const { proxy, bot, origin } = review
  const chunked = { body: new Blob(['x'.repeat(101)]).stream(), duplex: 'half' } as RequestInit
  for (const init of [{ body: 'x'.repeat(101) }, chunked]) {
    const answer = await proxy(bot.token, `${origin.url}/things`, { method: 'POST', ...init })
    t.match(await answer.json(), { status: 413, code: 'body_too_large' })
  }
  await review.hold('/things', { body: 'x'.repeat(100) })
  t.equal(origin.seen.length, 0)
})

t.test('a body without a length that no rule can read is held as well, or refused by its length', async t => {
  const review = await startReview(t, {
    config: { Proxy: { MaxEvaluatedBodyBytes: 1_024 }, HumanInTheLoop: { MaxStoredBodyBytes: 4_096 } },
  })
  const { proxy, bot, origin } = review
  const post = (length: number) => {
    const init = { method: 'POST', body: new Blob(['x'.repeat(length)]).stream(), duplex: 'half' } as RequestInit
    return proxy(bot.token, `${origin.url}/things`, init)
  }
  const held = await post(2_048)
  t.equal(held.status, 202)
  const approved = await review.approve(held.headers.get('gateway-hitl-id')!)
  t.equal(approved.status, 200)
  t.equal(origin.seen[0]?.bodyBytes, 2_048)
  t.match(await (await post(5_000)).json(), { status: 413, code: 'body_too_large' })
})

t.test("a circuit that is probed by a request that waits lets that request's replay pass", async t => {
  let broken = true
  const clock = createClock(Date.now())
  const review = await startReview(t, {
    clock,
    alone: 'a circuit is a gateway’s own',
    config: { System: { CircuitBreaker: { Failures: 1, OpenSeconds: 30 } } },
    answer: (_, res) => (broken ? res.destroy() : res.end('well again')),
  })
  const { proxy, bot, origin, approve, waiting } = review
  t.equal((await proxy(bot.token, origin.url)).status, 502)
  t.equal((await proxy(bot.token, origin.url)).status, 503)
  broken = false
  clock.advance(30_000)
  const held = proxy(bot.token, origin.url, { method: 'POST', headers: { Prefer: 'wait=55' } })
  const [item] = await waiting(bot, 1)
  t.equal((await approve(item!.id)).status, 200)
  t.equal(await (await held).text(), 'well again')
})
