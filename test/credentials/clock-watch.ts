import t from 'tap'
import { ClockWatch } from '../../src/credentials/clock-watch.ts'
import { createClock } from '../fixtures/clock.ts'

t.test('people are told of a wrong clock once, and of each change, at most once a minute', async t => {
  const clock = createClock()
  const watch = new ClockWatch(clock)
  /** How far ahead people are told that the server is, and how many more requests were refused. */
  const told = (ahead: number, name = 'aws') => {
    const date = new Date(clock.now() + ahead * 1_000).toUTCString()
    const numbers = watch.note(name, ['Date', date], 'aws.example')?.match(/-?\d+/g)
    return numbers?.map(Number)
  }
  t.strictSame([told(600), told(600), told(630)], [[600], undefined, undefined])
  t.strictSame([told(600, 'other'), told(0), told(300)], [[600], undefined, undefined], 'each credential has its own')
  t.strictSame([told(-600), told(600)], [undefined, undefined], 'servers with two clocks in turn')
  clock.advance(60_000)
  t.strictSame([told(-600), told(-600)], [[-600, 4], undefined])
  clock.advance(60_000)
  t.strictSame([told(-600), told(0), told(-600)], [undefined, undefined, [-600, 2]], 'it was right in between')
  clock.jump(-7_200_000)
  t.equal(told(-600), undefined)
  clock.advance(3_600_000)
  t.strictSame(told(-600), [-600, 1], 'after an hour again')
  t.equal(watch.note('aws', [], 'aws.example'), undefined)
})
