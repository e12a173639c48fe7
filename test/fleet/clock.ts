import t from 'tap'
import { FleetClock, type TimeSample } from '../../src/fleet/clock.ts'
import { clockIn } from '../../src/runtime/clock.ts'
import { createClock } from '../fixtures/clock.ts'

const hour = 3_600_000

/** A gateway whose own clock and database show the same time at first, and the turns that it takes. */
function open() {
  const local = createClock()
  const clock = new FleetClock(local)
  let jumped = 0
  const start = local.now() - local.steady()
  const database = () => start + local.steady() + jumped
  const turn = (more: Partial<TimeSample> = {}) => {
    const now = local.steady()
    clock.take({ sent: now, arrived: now, now: database(), othersAhead: null, served: true, ...more })
  }
  const turns = (count: number) => {
    for (let n = 0; n < count; n++) {
      local.advance(500)
      turn()
    }
  }
  turn({ served: false })
  turn()
  return { local, clock, database, turn, turns, jump: (ms: number) => (jumped += ms) }
}

t.test('a jump of the local wall clock changes nothing', async t => {
  const { local, clock, database, turn } = open()
  for (const ms of [hour, -3 * hour]) {
    local.jump(ms)
    t.equal(clock.now(), database())
    turn()
    t.equal(clock.now(), database())
  }
})

t.test('a jump of the database is followed by a tenth of the time that passes, and logged once', async t => {
  const { clock, database, turns, jump } = open()
  const told: number[] = []
  clock.onOff = ms => told.push(Math.round(ms / 1_000))
  for (const sign of [1, -1]) {
    jump(sign * hour)
    const before = clock.now()
    turns(20)
    t.equal(clock.now() - before, 10_000 + sign * 1_000)
    t.equal(clock.ahead, clock.now() - database())
    // It takes ten hours, or here nine seconds.
    jump(-sign * (hour - 10_000))
    turns(200)
    t.equal(clock.now(), database())
  }
  t.strictSame(told, [3_600, -3_600])
})

t.test(
  'one that could not serve goes forward at once, as its steady clock may have stood still, but never back',
  async t => {
    const { clock, database, turn, jump, local } = open()
    jump(hour)
    turn({ served: false })
    t.equal(clock.now(), database())
    jump(-hour)
    const before = clock.now()
    local.advance(500)
    turn({ served: false })
    t.equal(clock.now() - before, 450)
  },
)

t.test('one that starts takes the time of the others, not that of a database whose clock has jumped', async t => {
  const { local, database } = open()
  const clock = new FleetClock(local)
  const now = local.steady()
  clock.take({ sent: now, arrived: now, now: database() + hour, othersAhead: -hour, served: false })
  t.strictSame([clock.now(), clock.ahead], [database(), -hour])
})

t.test('a sample that took long is dropped, and one that could be right as it is changes nothing', async t => {
  const { clock, turn, local } = open()
  const before = clock.now()
  const sent = local.steady()
  turn({ sent: sent - 501, now: before + hour })
  turn({ sent: sent - 40, now: before - 20 + 19 })
  t.equal(clock.now(), before)
})

t.test('other threads have the same time', async t => {
  const { clock, turns, jump, local } = open()
  jump(5_000)
  turns(3)
  t.equal(clockIn(clock.memory, local).now(), clock.now())
})
