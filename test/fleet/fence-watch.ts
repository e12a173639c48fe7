import t, { type Test } from 'tap'
import { Fence } from '../../src/fleet/fence.ts'
import { watchFence } from '../../src/fleet/fence-watch.ts'
import { systemClock } from '../../src/runtime/clock.ts'
import { eventually } from '../fixtures/gateway.ts'

/** An open fence that is watched, and when its falls were told. */
function watched(t: Test, limitMs: number) {
  const fence = new Fence(systemClock, limitMs)
  /** Two turns. Returns the beginning of the second one. */
  const open = (): number => {
    fence.confirm(fence.begin())
    const begun = fence.begin()
    fence.confirm(begun)
    return begun.steady
  }
  const opened = open()
  const watch = watchFence(fence)
  t.teardown(() => watch.close())
  const falls: number[] = []
  const end = watch.subscribe(() => falls.push(systemClock.steady()))
  const told = (count: number) =>
    eventually(
      () => falls.length,
      length => length >= count,
    )
  return { fence, watch, opened, open, falls, told, end }
}

t.test('each fall is published once, when the time of the fence is up', async t => {
  const { opened, open, falls, told } = watched(t, 300)
  await told(1)
  // The wall clock counts whole milliseconds, so by it the time is up as much as one of them before.
  t.ok(falls[0]! - opened > 298)
  open()
  await told(2)
  t.equal(falls.length, 2)
})

t.test('a fence that is dropped is noticed long before its time is up', async t => {
  const { fence, falls, told } = watched(t, 1_000_000)
  fence.drop()
  await told(1)
  t.equal(falls.length, 1)
})

t.test('a listener that has gone is not notified', async t => {
  const { watch, end, falls } = watched(t, 50)
  let others = 0
  watch.subscribe(() => void others++)
  end()
  await eventually(
    () => others,
    count => count === 1,
  )
  t.strictSame(falls, [])
})
