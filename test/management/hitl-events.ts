import { once } from 'node:events'
import { connect } from 'node:net'
import { mock } from 'node:test'
import t, { type Test } from 'tap'
import { startControl } from '../fixtures/control.ts'
import { stored } from '../fixtures/events.ts'
import { startReview } from '../fixtures/review.ts'
import { readEvents } from '../fixtures/sse.ts'

const review = await startReview(t)
const { url, reviewer, hold, approve, deny, manage } = review

const listen = (t: Test, lastId?: string, token = reviewer.token) =>
  readEvents(t, `${url}/hitl/events`, {
    Authorization: `Bearer ${token}`,
    ...(lastId === undefined ? {} : { 'Last-Event-ID': lastId }),
  })

t.test('reviewers get events as they happen', async t => {
  const events = await listen(t)
  t.match(Object.fromEntries(events.response.headers), {
    'content-type': 'text/event-stream; charset=utf-8',
    'cache-control': 'no-store',
  })
  const id = await hold('/things')
  t.match(await events.next(), {
    id: /-\d+$/,
    event: 'pending',
    data: {
      type: 'pending',
      hitlId: id,
      at: /Z$/,
      data: { id, method: 'POST', agentId: review.bot.id, agentName: 'tester', rule: 'posts', digest: String },
    },
  })
  await (await approve(id)).text()
  t.match(await events.next(), { event: 'approved', data: { hitlId: id, data: { by: reviewer.id } } })
  t.match(await events.next(), { event: 'completed', data: { hitlId: id, data: { responseStatus: 200 } } })
})

t.test('a reader that comes back with the last id gets what it missed, and nothing twice', async t => {
  const first = await listen(t)
  // Nothing has happened yet: the id comes alone.
  await first.block()
  await first.block()
  t.match(first.lastId(), /-\d+$/)
  await first.close()
  const [one, two] = [await hold('/1'), await hold('/2')]
  const second = await listen(t, first.lastId())
  t.match(await second.next(), { event: 'pending', data: { hitlId: one } })
  const between = second.lastId()
  t.match(await second.next(), { data: { hitlId: two } })
  const third = await listen(t, between)
  t.match(await third.next(), { data: { hitlId: two } })
  await deny(two)
  for (const events of [second, third]) t.match(await events.next(), { event: 'denied', data: { hitlId: two } })
})

t.test('an id that is not known any more is answered with reset, and an id to go on from', async t => {
  const events = await listen(t, 'another-run-17')
  t.match(await events.next(), { event: 'reset', data: {} })
  const id = await hold('/3')
  const again = await listen(t, events.lastId())
  t.match(await again.next(), { event: 'pending', data: { hitlId: id } })
})

t.test('agents get no events', async t => {
  const events = await listen(t, undefined, review.bot.token)
  t.equal(events.response.status, 403)
})

t.test('the stream ends with the role that let the caller in', async t => {
  const other = await review.newReviewer()
  const events = await listen(t, undefined, other.token)
  await manage('PUT', `/agents/${other.id}/roles`, { roles: ['agent'] })
  await hold('/4')
  t.equal(await events.next(), undefined)
})

t.test('the stream ends with its token', async t => {
  const { url, clock, person, suspend } = await startControl(t)
  const { token } = await person('auditor')
  const bot = await person('agent')
  const events = await readEvents(t, `${url}/hitl/events`, { Authorization: `Bearer ${token}` })
  await suspend(bot.agent)
  t.match(await events.next(), { event: 'pending' })
  clock.advance(15 * 60_000)
  await suspend(bot.agent)
  t.equal(await events.next(), undefined)
})

t.test('a stream on which nothing happens says every fifteen seconds that it is still here', async t => {
  mock.timers.enable({ apis: ['setInterval'] })
  t.teardown(() => mock.timers.reset())
  const { url, person, stop } = await startControl(t)
  const { token } = await person('admin')
  const events = await readEvents(t, `${url}/hitl/events`, { Authorization: `Bearer ${token}` })
  t.equal(await events.block(), 'retry: 2000')
  t.match(await events.block(), /^id: /)
  mock.timers.tick(14_999)
  mock.timers.tick(1)
  t.equal(await events.block(), ': still here')
  stop()
  t.equal(await events.next(), undefined)
})

t.test('a reader that takes nothing is cut off, and the others are not', async t => {
  const { url, events, person } = await startControl(t, {}, { alone: 'its own events fill the stream' })
  const { token } = await person('reviewer')
  const good = await readEvents(t, `${url}/hitl/events`, { Authorization: `Bearer ${token}` })
  const stuck = connect(Number(new URL(url).port), '127.0.0.1')
  t.teardown(() => stuck.destroy())
  stuck.write(`GET /hitl/events HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${token}\r\n\r\n`)
  await once(stuck, 'readable')
  const text = 'x'.repeat(100_000)
  const told = 300
  for (let count = 0; count < told; count++) {
    events.change('', stored(count + 10, 'expired', String(count), { text }))
    if ((await good.next())?.data.hitlId !== String(count)) t.fail('the good reader missed one')
  }
  let taken = 0
  stuck.on('data', chunk => {
    taken += chunk.length
  })
  stuck.on('error', () => {})
  await once(stuck, 'close')
  t.ok(taken > 0 && taken < told * text.length, `${taken} bytes`)
})

t.test('a stop ends every stream at once', async t => {
  const stopping = await startReview(t)
  const events = await readEvents(t, `${stopping.url}/hitl/events`, {
    Authorization: `Bearer ${stopping.reviewer.token}`,
  })
  t.equal(await stopping.close(), 0)
  t.equal(await events.next(), undefined)
})
