import { once } from 'node:events'
import { MessageChannel } from 'node:worker_threads'
import t, { type Test } from 'tap'
import { openLink } from '../../src/runtime/link.ts'
import { StoreError } from '../../src/storage/store.ts'
import { errorOf } from '../../src/threads/protocol.ts'

interface Answers {
  add(left: number, right: number): Promise<number>
  fail(kind: string): Promise<void>
  wait(signal: AbortSignal): Promise<string>
  visit(each?: () => void): Promise<void>
}

function openPair(t: Test) {
  const { port1, port2 } = new MessageChannel()
  const seen = { aborted: 0 }
  const theirs = openLink<Answers, object>(port2, {
    add: (left, right) => left + right,
    fail: kind => {
      throw kind === 'store' ? new StoreError('full') : new TypeError('odd')
    },
    wait: async signal => {
      await once(signal, 'abort')
      seen.aborted += 1
      return 'aborted'
    },
    visit: each => each?.(),
  })
  const ours = openLink<object, Answers>(port1, {}, { errorOf })
  t.teardown(() => {
    port1.close()
    port2.close()
  })
  return { ours, theirs, seen }
}

t.test('calls are answered, each with its own answer', async t => {
  const { ours } = openPair(t)
  const sums = await Promise.all(Array.from({ length: 50 }, (_, index) => ours.call('add', [index, 1])))
  t.strictSame(
    sums,
    Array.from({ length: 50 }, (_, index) => index + 1),
  )
})

t.test('an object of the other side is called as one of this side', async t => {
  const { ours, seen } = openPair(t)
  const answers = ours.remote(['add', 'wait'])
  t.equal(await answers.add(2, 3), 5)
  const left = new AbortController()
  const answer = answers.wait(left.signal)
  left.abort()
  t.equal(await answer, 'aborted')
  t.equal(seen.aborted, 1)
})

t.test('a method that takes a function is none of another thread: it is found by its type', async t => {
  const { ours } = openPair(t)
  // @ts-expect-error a function cannot be handed over
  const { visit } = ours.remote(['visit'])
  await t.rejects(
    visit(() => {}),
    { name: 'DataCloneError' },
  )
})

t.test('a failure says what it was; one of the store stays one', async t => {
  const { ours } = openPair(t)
  await t.rejects(ours.call('fail', ['store']), { name: 'StoreError', message: 'full' })
  await t.rejects(ours.call('fail', ['other']), { name: 'ThreadError', message: 'TypeError: odd' })
})

t.test('a message without an answer that fails is lost, and nothing else with it', async t => {
  const { ours } = openPair(t)
  ours.notify('fail', ['told'])
  t.equal(await ours.call('add', [1, 1]), 2)
})

t.test('who no longer waits says so on the other side', async t => {
  const { ours, seen } = openPair(t)
  const left = new AbortController()
  const answer = ours.call('wait', [left.signal])
  left.abort()
  t.equal(await answer, 'aborted')
  t.equal(seen.aborted, 1)
})

t.test('when the other side is gone, calls reject and its work is aborted', async t => {
  const { ours, theirs, seen } = openPair(t)
  const answer = ours.call('wait', [new AbortController().signal])
  await ours.call('add', [1, 1])
  ours.end()
  theirs.end()
  await t.rejects(answer, { name: 'ThreadError' })
  await t.rejects(ours.call('add', [1, 1]), { name: 'ThreadError' })
  await new Promise(setImmediate)
  t.equal(seen.aborted, 1)
})
