/** Threat T12 of SECURITY.md. */

import { createThrottle } from '../../src/tokens/throttle.ts'
import { createClock } from '../fixtures/clock.ts'
import t from '../fixtures/tap.ts'

t.test('N failures a minute are allowed, and the next attempt waits for the oldest to be a minute old', async t => {
  const clock = createClock()
  const throttle = createThrottle(3, clock)
  for (let i = 0; i < 3; i++) {
    t.equal(throttle.begin('a'), undefined)
    throttle.end('a', true)
    clock.advance(10_000)
  }
  t.equal(throttle.begin('a'), 30)
  t.equal(throttle.begin('b'), undefined, 'each key counts for itself')
  clock.advance(29_999)
  t.equal(throttle.begin('a'), 1)
  clock.advance(1)
  t.equal(throttle.begin('a'), undefined)
})

t.test('successes do not count', async t => {
  const throttle = createThrottle(1, createClock())
  for (let i = 0; i < 10; i++) {
    t.equal(throttle.begin('a'), undefined)
    throttle.end('a', false)
  }
})

t.test('attempts under way count as failures until they are over', async t => {
  const throttle = createThrottle(2, createClock())
  t.equal(throttle.begin('a'), undefined)
  t.equal(throttle.begin('a'), undefined)
  t.equal(throttle.begin('a'), 1)
  throttle.end('a', false)
  t.equal(throttle.begin('a'), undefined)
  throttle.end('a', true)
  throttle.end('a', true)
  t.equal(throttle.begin('a'), 60)
})

t.test('made-up keys do not grow the memory without end', async t => {
  const clock = createClock()
  const throttle = createThrottle(1, clock)
  throttle.begin('first')
  throttle.end('first', true)
  for (let i = 0; i < 20_000; i++) throttle.begin(`k${i}`)
  t.equal(throttle.begin('first'), undefined, 'the oldest was forgotten')
})
