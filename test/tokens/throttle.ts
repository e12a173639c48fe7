/** Threat T12 of SECURITY.md. */

import t from 'tap'
import { createThrottle, type FleetAttemptLimit, type Throttle } from '../../src/tokens/throttle.ts'
import { createClock } from '../fixtures/clock.ts'

function begin(throttle: Throttle, key: string) {
  const attempt = throttle.begin(key)
  if (typeof attempt === 'number') throw new TypeError(`no room for ${attempt} s`)
  return attempt
}

t.test('N failures a minute are allowed, and the next attempt waits for the oldest to be a minute old', async t => {
  const clock = createClock()
  const throttle = createThrottle(3, clock)
  for (let i = 0; i < 3; i++) {
    begin(throttle, 'a').end(true)
    clock.advance(10_000)
  }
  t.equal(throttle.begin('a'), 30)
  begin(throttle, 'b').end(true)
  clock.advance(29_999)
  t.equal(throttle.begin('a'), 1)
  clock.advance(1)
  begin(throttle, 'a')
})

t.test('successes do not count', async t => {
  const throttle = createThrottle(1, createClock())
  for (let i = 0; i < 10; i++) begin(throttle, 'a').end(false)
  t.pass('there was room for each')
})

t.test('attempts under way count as failures until they are over', async t => {
  const throttle = createThrottle(2, createClock())
  const [one, other] = [begin(throttle, 'a'), begin(throttle, 'a')]
  t.equal(throttle.begin('a'), 1)
  one.end(false)
  const third = begin(throttle, 'a')
  other.end(true)
  third.end(true)
  t.equal(throttle.begin('a'), 60)
})

t.test('made-up keys do not grow the memory without end', async t => {
  const clock = createClock()
  const throttle = createThrottle(1, clock)
  begin(throttle, 'first').end(true)
  for (let i = 0; i < 20_000; i++) begin(throttle, `k${i}`)
  t.type(throttle.begin('first'), 'object', 'the oldest was forgotten')
})

/** A fleet of four that answers so, one answer a call; the calls. */
function answering(...answers: (number | undefined)[]) {
  const calls: string[] = []
  const fleet: FleetAttemptLimit = {
    async take() {
      calls.push('take')
      return answers.shift()
    },
    giveBack: () => void calls.push('giveBack'),
    gateways: () => 4,
  }
  return { calls, fleet }
}

t.test('a fleet without room is not asked again before it has some', async t => {
  const clock = createClock()
  const { calls, fleet } = answering(0, 12_000, 0)
  const throttle = createThrottle(5, clock, fleet)
  const first = begin(throttle, 'a')
  t.equal(await first.confirm(), undefined)
  first.end(true)
  const second = begin(throttle, 'a')
  t.equal(await second.confirm(), 12)
  second.end(false)
  for (let i = 0; i < 1_000; i++) t.equal(throttle.begin('a'), 12)
  t.strictSame(calls, ['take', 'take'])
  clock.advance(12_000)
  t.equal(await begin(throttle, 'a').confirm(), undefined)
})

t.test('an attempt gives the room in the fleet back that it took, unless it failed', async t => {
  const { calls, fleet } = answering(0, 0)
  const throttle = createThrottle(5, createClock(), fleet)
  for (const failed of [false, true]) {
    const attempt = begin(throttle, 'a')
    await attempt.confirm()
    attempt.end(failed)
  }
  begin(throttle, 'a').end(false)
  t.strictSame(calls, ['take', 'giveBack', 'take'])
})

t.test('while the fleet does not answer, a gateway has room for its share', async t => {
  const { calls, fleet } = answering()
  const throttle = createThrottle(8, createClock(), fleet)
  const attempts = Array.from({ length: 3 }, () => begin(throttle, 'a'))
  t.strictSame(await Promise.all(attempts.slice(0, 2).map(one => one.confirm())), [1, 1], 'all three count')
  for (const one of attempts.slice(1)) one.end(false)
  t.equal(await attempts[0]!.confirm(), undefined)
  t.notOk(calls.includes('giveBack'))
})
