import t from 'tap'
import { shareFor } from '../../src/runtime/shared-answer.ts'
import { createClock } from '../fixtures/clock.ts'

t.test('all who ask while it is made, and for a while after, get one outcome', async t => {
  const clock = createClock()
  let made = 0
  const doors: (() => void)[] = []
  const ask = shareFor(1_000, clock, async () => {
    await new Promise<void>(resolve => doors.push(resolve))
    return ++made
  })
  const early = Promise.all([ask(), ask(), ask()])
  clock.advance(60_000)
  const late = ask()
  doors[0]?.()
  t.strictSame([...(await early), await late], [1, 1, 1, 1])
  clock.advance(999)
  t.equal(await ask(), 1)
  clock.advance(1)
  const next = ask()
  doors[1]?.()
  t.equal(await next, 2)
})
