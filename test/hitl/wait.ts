import t from 'tap'
import { refuse } from '../../src/base/refusals.ts'
import { eventually } from '../fixtures/gateway.ts'
import { agent, answered, openDesk, otherAgent, reviewer, suspended, verdict } from '../fixtures/hitl.ts'
import { testdir } from '../fixtures/testdir.ts'

/** Far longer than any test: what ends the wait is the verdict. */
const long = () => ({ ms: 600_000, signal: new AbortController().signal })

t.test('a call that waits gets the outcome when it is on record', async t => {
  const desk = await openDesk({ directory: testdir(t) })
  t.teardown(() => desk.store.close())
  const [first, second, third] = await Promise.all([suspended(desk), suspended(desk), suspended(desk)])
  const waits = [first, second, third].map(id => desk.queue.waitForVerdict(id, agent, long()))
  await desk.queue.approve(first, verdict())
  await desk.queue.deny(second, { ...verdict(), comment: 'no' })
  t.match(await waits[0], { status: 'Approved', replay: 'completed', responseStored: true })
  t.match(await waits[1], { status: 'Denied', comment: 'no' })
  desk.clock.advance(3_600_000)
  await desk.queue.sweep()
  t.equal(await waits[2], undefined)
})

t.test('a replay that failed is an outcome; one that could not be sent is none', async t => {
  const desk = await openDesk({ directory: testdir(t) })
  t.teardown(() => desk.store.close())
  const id = await suspended(desk)
  const wait = desk.queue.waitForVerdict(id, agent, long())
  desk.answer = async () => ({ kind: 'notSent', refusal: refuse('upstream_failed') })
  await desk.queue.approve(id, verdict())
  desk.answer = async () => ({ kind: 'failed', refusal: refuse('upstream_failed') })
  await desk.queue.approve(id, verdict())
  t.match(await wait, { status: 'Approved', replay: 'failed', attempt: 2 })
})

t.test('a replay in flight is waited for', async t => {
  const upstream = Promise.withResolvers<void>()
  const desk = await openDesk({
    directory: testdir(t),
    answer: async () => {
      await upstream.promise
      return answered()
    },
  })
  t.teardown(() => desk.store.close())
  const id = await suspended(desk)
  const approval = desk.queue.approve(id, verdict())
  await eventually(() => desk.sent.length, Boolean)
  const wait = desk.queue.waitForVerdict(id, agent, long())
  upstream.resolve()
  await approval
  t.match(await wait, { replay: 'completed' })
})

t.test('a verdict given before is answered at once', async t => {
  const desk = await openDesk({ directory: testdir(t) })
  t.teardown(() => desk.store.close())
  const id = await suspended(desk)
  await desk.queue.deny(id, verdict())
  t.match(await desk.queue.waitForVerdict(id, agent, long()), { status: 'Denied' })
})

t.test('when the time is over, or the waiter is gone, the request is as it is then', async t => {
  const desk = await openDesk({ directory: testdir(t) })
  t.teardown(() => desk.store.close())
  const id = await suspended(desk)
  t.match(await desk.queue.waitForVerdict(id, agent, { ...long(), ms: 1 }), { status: 'Pending' })
  const gone = new AbortController()
  const wait = desk.queue.waitForVerdict(id, agent, { ms: 600_000, signal: gone.signal })
  gone.abort()
  t.match(await wait, { status: 'Pending' })
  t.match(await desk.queue.waitForVerdict(id, agent, { ms: 600_000, signal: gone.signal }), { status: 'Pending' })
})

t.test('nobody waits for what they may not see', async t => {
  const desk = await openDesk({ directory: testdir(t) })
  t.teardown(() => desk.store.close())
  const id = await suspended(desk)
  t.equal(await desk.queue.waitForVerdict(id, otherAgent, long()), undefined)
  t.equal(await desk.queue.waitForVerdict('nothing', agent, long()), undefined)
  t.match(await desk.queue.waitForVerdict(id, reviewer, { ...long(), ms: 1 }), { status: 'Pending' })
})
