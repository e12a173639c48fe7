/** Threat T30 of SECURITY.md. */
import t from 'tap'
import type { Breaker, Permit } from '../../src/limits/breaker.ts'
import { createBreaker } from '../../src/limits/breaker.ts'

const settings = { failures: 3, windowMs: 60_000, openMs: 30_000, maxKeys: 3 }

function permit(breaker: Breaker, key: string, now: number): Permit {
  const taken = breaker.acquire(key, now)
  if (typeof taken === 'number') throw new Error(`no permit for ${taken} ms`)
  return taken
}

function fail(breaker: Breaker, key: string, now: number): void {
  breaker.release(permit(breaker, key, now), 'failure', now)
}

t.test('the circuit opens after so many failures and tells how long', async t => {
  const breaker = createBreaker(settings)
  fail(breaker, 'k', 0)
  fail(breaker, 'k', 1_000)
  t.type(breaker.acquire('k', 1_500), 'object')
  fail(breaker, 'k', 2_000)
  t.equal(breaker.acquire('k', 2_000), 30_000)
  t.equal(breaker.acquire('k', 31_999), 1)
})

t.test('failures outside the window do not count', async t => {
  const breaker = createBreaker(settings)
  fail(breaker, 'k', 0)
  fail(breaker, 'k', 1)
  fail(breaker, 'k', 60_001)
  t.type(breaker.acquire('k', 60_001), 'object')
})

t.test('half-open lets exactly one probe out; its success closes the circuit', async t => {
  const breaker = createBreaker(settings)
  for (let i = 0; i < 3; i++) fail(breaker, 'k', 0)
  const probe = permit(breaker, 'k', 30_000)
  t.ok(probe.probe)
  t.equal(breaker.acquire('k', 30_000), 1_000, 'a second one waits')
  breaker.release(probe, 'success', 30_100)
  t.notOk(permit(breaker, 'k', 30_100).probe)
  t.equal(breaker.size, 0)
})

t.test('a failed probe opens the circuit anew', async t => {
  const breaker = createBreaker(settings)
  for (let i = 0; i < 3; i++) fail(breaker, 'k', 0)
  breaker.release(permit(breaker, 'k', 30_000), 'failure', 30_500)
  t.equal(breaker.acquire('k', 30_500), 30_000)
})

t.test('a probe that says nothing makes room for another', async t => {
  const breaker = createBreaker(settings)
  for (let i = 0; i < 3; i++) fail(breaker, 'k', 0)
  breaker.release(permit(breaker, 'k', 30_000), 'neutral', 30_100)
  t.ok(permit(breaker, 'k', 30_100).probe)
})

t.test('neutral outcomes never open it', async t => {
  const breaker = createBreaker(settings)
  for (let i = 0; i < 50; i++) breaker.release(permit(breaker, 'k', 0), 'neutral', 0)
  t.equal(breaker.size, 0)
})

t.test('only so many failing keys are kept', async t => {
  const breaker = createBreaker(settings)
  for (let i = 0; i < 100; i++) fail(breaker, `k${i}`, 0)
  t.equal(breaker.size, 3)
})
