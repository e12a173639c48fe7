import t, { type Test } from 'tap'
import type { CallTerms } from '../../src/hitl/calls.ts'
import { agent, held, openDesk, otherAgent, reviewer, suspended, verdict } from '../fixtures/hitl.ts'
import { testdir } from '../fixtures/testdir.ts'

const terms: CallTerms = { viewer: agent, requestId: 'r', staysHeld: true, comesAgain: false, ms: 600_000 }

async function openCalls(t: Test) {
  const desk = await openDesk({ directory: testdir(t) })
  t.teardown(() => desk.store.close())
  const suspend = async (idempotencyKey?: string, cancelKey?: string) => {
    const result = await desk.queue.suspend({ ...held(), call: { kind: 'waits', cancelKey }, idempotencyKey })
    if (!('id' in result)) throw new TypeError(result.refusal)
    return result
  }
  const statusOf = async (id: string) => (await desk.queue.get(id, reviewer))?.status
  return { ...desk, suspend, statusOf }
}

t.test('only when the last call ends is its request withdrawn', async t => {
  const { queue, suspend, statusOf, events } = await openCalls(t)
  const { id } = await suspend()
  t.equal((await suspend()).id, id)
  const [one, two] = [new AbortController(), new AbortController()]
  const waits = [one, two].map(({ signal }) => queue.waitAsCall(id, terms, signal))
  one.abort()
  await waits[0]
  t.equal(await statusOf(id), 'Pending')
  two.abort()
  await waits[1]
  t.equal(await statusOf(id), 'Withdrawn')
  t.match(events.at(-1), { type: 'withdrawn', hitlId: id, data: { cause: 'left' } })
  t.match(await queue.approve(id, verdict()), { refusal: 'withdrawn', status: 409 })
  t.not((await suspend()).id, id, 'the same request is another one from now on')
})

t.test('what a call was asked to look for stays held when the others end, and nobody joins it any more', async t => {
  const { queue, suspend, statusOf } = await openCalls(t)
  const { id } = await suspend()
  const gone = new AbortController()
  const leaving = queue.waitAsCall(id, terms, gone.signal)
  t.match(await queue.waitAsCall(id, { ...terms, ms: 1 }, new AbortController().signal), { status: 'Pending' })
  gone.abort()
  await leaving
  t.equal(await statusOf(id), 'Pending')
  t.not((await suspend()).id, id)
})

t.test('a request under a key that was used before is not withdrawn', async t => {
  const { queue, suspend, statusOf } = await openCalls(t)
  const first = await suspend('k')
  const again = await suspend('k')
  t.equal(again.id, first.id)
  await queue.waitAsCall(first.id, terms, AbortSignal.abort())
  t.equal(await statusOf(first.id), 'Pending')
  const alone = await suspend('l')
  await queue.waitAsCall(alone.id, terms, AbortSignal.abort())
  t.equal(await statusOf(alone.id), 'Withdrawn')
})

t.test('one retry gets the outcome, within ten minutes', async t => {
  const { queue, suspend, clock } = await openCalls(t)
  const { id } = await suspend()
  await queue.deny(id, verdict())
  t.equal((await suspend()).id, id)
  t.match(await queue.waitAsCall(id, terms, new AbortController().signal), { status: 'Denied' })
  const second = await suspend()
  t.not(second.id, id)
  await queue.deny(second.id, verdict())
  clock.advance(600_001)
  t.not((await suspend()).id, second.id)
})

t.test('requests that do not wait, and those of other agents, join nothing', async t => {
  const { queue, suspend, ...desk } = await openCalls(t)
  const { id } = await suspend()
  t.not(await suspended({ ...desk, queue }), id)
  t.not(await suspended({ ...desk, queue }, { agent: otherAgent }), id)
})

t.test('a call is cancelled by its key and its agent alone', async t => {
  const { queue, suspend, statusOf } = await openCalls(t)
  const { id } = await suspend(undefined, 'c')
  const wait = queue.waitAsCall(id, { ...terms, cancelKey: 'c' }, new AbortController().signal)
  t.equal(await queue.cancelCall(otherAgent.id, 'c', null), false)
  t.equal(await queue.cancelCall(agent.id, 'd', null), false)
  t.equal(await queue.cancelCall(agent.id, 'c', null), true)
  t.equal(await wait, 'cancelled')
  t.equal(await statusOf(id), 'Withdrawn')
  t.equal(await queue.cancelCall(agent.id, 'c', null), false, 'nothing is left of it')
})
