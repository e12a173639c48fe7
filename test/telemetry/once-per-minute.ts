import t from 'tap'
import { createOncePerMinute } from '../../src/telemetry/once-per-minute.ts'
import { createClock } from '../fixtures/clock.ts'

t.test('a key is the first of its kind once a minute', async t => {
  const clock = createClock()
  const isFirst = createOncePerMinute(clock)
  t.strictSame([isFirst('a'), isFirst('a'), isFirst('b')], [true, false, true])
  clock.advance(60_000)
  t.equal(isFirst('a'), true)
})

t.test('T32 an owner who chooses the keys has twenty of them a minute, and hides nobody else', async t => {
  const clock = createClock()
  const isFirst = createOncePerMinute(clock)
  const firsts = Array.from({ length: 2_000 }, (_, at) => isFirst(`host ${at}`, 'loud')).filter(Boolean)
  t.equal(firsts.length, 20)
  t.equal(isFirst('host 0', 'quiet'), true, 'the same key of another owner')
  clock.advance(60_000)
  t.equal(isFirst('host 0', 'loud'), true)
})
