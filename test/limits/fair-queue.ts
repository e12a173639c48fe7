import t from 'tap'
import { createFairQueue } from '../../src/limits/fair-queue.ts'

/** Work that says when it starts, and ends when told. */
function open(limits: { atOnce: number; atOnceEach: number; waitingEach: number }) {
  const line = createFairQueue(limits)
  const started: string[] = []
  const ends = new Map<string, () => void>()
  const enter = (owner: string, name: string) => {
    const work = {
      waits: true,
      start(done: () => void) {
        work.waits = false
        started.push(name)
        ends.set(name, done)
      },
    }
    return line.enter(owner, work)
  }
  return { line, started, enter, end: (name: string) => ends.get(name)?.() }
}

t.test('owners take turns, however much one of them has', async t => {
  const { started, enter, end } = open({ atOnce: 1, atOnceEach: 1, waitingEach: 10 })
  for (const name of ['a1', 'a2', 'a3']) enter('a', name)
  for (const name of ['b1', 'b2']) enter('b', name)
  enter('c', 'c1')
  for (let i = 0; i < 6; i++) end(started.at(-1) ?? '')
  t.strictSame(started, ['a1', 'a2', 'b1', 'c1', 'a3', 'b2'])
})

t.test('one owner leaves places for others, and has only so much waiting', async t => {
  const { started, enter } = open({ atOnce: 3, atOnceEach: 2, waitingEach: 1 })
  t.strictSame(
    ['a1', 'a2', 'a3', 'a4'].map(name => enter('a', name)),
    [true, true, true, false],
  )
  t.strictSame(started, ['a1', 'a2'])
  enter('b', 'b1')
  t.strictSame(started, ['a1', 'a2', 'b1'])
})

t.test('work that nobody waits for any more is passed over', async t => {
  const { line, started, enter, end } = open({ atOnce: 1, atOnceEach: 1, waitingEach: 10 })
  enter('a', 'a1')
  line.enter('a', { waits: false, start: () => t.fail('started') })
  line.enter('b', { waits: false, start: () => t.fail('started') })
  enter('a', 'a2')
  end('a1')
  t.strictSame(started, ['a1', 'a2'])
})
