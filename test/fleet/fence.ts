import t from 'tap'
import { Fence } from '../../src/fleet/fence.ts'
import { createClock } from '../fixtures/clock.ts'

function fenced() {
  const clock = createClock()
  const fence = new Fence(clock, 10_000)
  /** A turn that takes so long. */
  const turn = (ms = 0) => {
    const begun = fence.begin()
    clock.advance(ms)
    fence.confirm(begun)
  }
  return { clock, fence, turn }
}

t.test('a gateway serves after two turns, and for so long after the beginning of its last one', async t => {
  const { clock, fence, turn } = fenced()
  t.equal(fence.isOpen, false)
  turn()
  t.equal(fence.isOpen, false, 'others may have left it out while the first turn was under way')
  clock.advance(500)
  turn(400)
  t.equal(fence.isOpen, true)
  clock.advance(9_599)
  t.equal(fence.isOpen, true)
  clock.advance(1)
  t.equal(fence.isOpen, false, 'counted from the beginning of the turn, not from its end')
})

t.test('each turn keeps it open, in whatever rhythm they come', async t => {
  const { clock, fence, turn } = fenced()
  turn()
  for (let n = 0; n < 20; n++) {
    turn(3_000)
    clock.advance(3_900)
    t.equal(fence.isOpen, true)
  }
})

t.test('an answer that comes after the fence fell does not lift it; a turn that begins then does', async t => {
  const { clock, fence, turn } = fenced()
  turn()
  turn()
  turn(10_001)
  t.equal(fence.isOpen, false)
  const early = fence.begin()
  clock.advance(1)
  turn()
  t.equal(fence.isOpen, true)
  clock.advance(20_000)
  fence.confirm(early)
  t.equal(fence.isOpen, false)
  fence.confirm(early)
  t.equal(fence.isOpen, false, 'it began before the first answer came')
})

t.test('either clock closes it: that of a paused machine stands still, and a wall clock may jump ahead', async t => {
  const { clock, fence, turn } = fenced()
  turn()
  turn()
  clock.jump(10_000)
  t.equal(fence.isOpen, false)
  turn()
  turn()
  t.equal(fence.isOpen, true)
  clock.jump(-3_600_000)
  t.equal(fence.isOpen, true)
  clock.advance(10_000)
  t.equal(fence.isOpen, false, 'a wall clock that went back does not hold it up')
  turn()
  turn()
  clock.jump(-3_600_000)
  turn()
  clock.jump(10_000)
  t.equal(fence.isOpen, false, 'and the next turn counts from the new time')
})

t.test('one that others have left out needs two turns again', async t => {
  const { fence, turn } = fenced()
  turn()
  turn()
  fence.drop()
  t.equal(fence.isOpen, false)
  turn()
  t.equal(fence.isOpen, false)
  turn()
  t.equal(fence.isOpen, true)
})

t.test('every thread sees the same through the memory', async t => {
  const { clock, fence, turn } = fenced()
  const other = new Fence(clock, 10_000, fence.memory)
  turn()
  turn()
  t.equal(other.isOpen, true)
  clock.advance(10_000)
  t.equal(other.isOpen, false)
})

t.test('a turn from before others left it out proves nothing, however late it is confirmed', async t => {
  const { clock, fence, turn } = fenced()
  turn()
  turn()
  const before = fence.begin()
  clock.advance(1)
  fence.drop()
  fence.confirm(before)
  turn()
  t.equal(fence.isOpen, false)
  turn()
  t.equal(fence.isOpen, true)
})
