/** Threat T30 of SECURITY.md. */
import t from 'tap'
import type { Breaker, Permit } from '../../src/limits/breaker.ts'
import { breakerShape, createBreaker } from '../../src/limits/breaker.ts'
import { createTable } from '../fixtures/table.ts'

const settings = { failures: 3, windowMs: 60_000, openMs: 30_000 }
const create = () => createBreaker(settings, createTable(breakerShape(3)))

function permit(breaker: Breaker, key: string, now: number): Permit {
  const taken = breaker.acquire(key, now)
  if (typeof taken === 'number') throw new Error(`no permit for ${taken} ms`)
  return taken
}

function fail(breaker: Breaker, key: string, now: number): void {
  breaker.release(permit(breaker, key, now), 'failure', now)
}

t.test('the circuit opens after so many failures and tells how long', async t => {
  const breaker = create()
  fail(breaker, 'k', 0)
  fail(breaker, 'k', 1_000)
  t.type(breaker.acquire('k', 1_500), 'object')
  fail(breaker, 'k', 2_000)
  t.equal(breaker.acquire('k', 2_000), 30_000)
  t.equal(breaker.acquire('k', 31_999), 1)
})

t.test('failures outside the window do not count', async t => {
  const breaker = create()
  fail(breaker, 'k', 0)
  fail(breaker, 'k', 1)
  fail(breaker, 'k', 60_001)
  t.type(breaker.acquire('k', 60_001), 'object')
})

t.test('half-open lets exactly one probe out; its success closes the circuit', async t => {
  const breaker = create()
  for (let i = 0; i < 3; i++) fail(breaker, 'k', 0)
  const probe = permit(breaker, 'k', 30_000)
  t.ok(probe.probe)
  t.equal(breaker.acquire('k', 30_000), 1_000, 'a second one waits')
  breaker.release(probe, 'success', 30_100)
  t.notOk(permit(breaker, 'k', 30_100).probe)
  t.equal(breaker.size, 0)
})

t.test('a failed probe opens the circuit anew', async t => {
  const breaker = create()
  for (let i = 0; i < 3; i++) fail(breaker, 'k', 0)
  breaker.release(permit(breaker, 'k', 30_000), 'failure', 30_500)
  t.equal(breaker.acquire('k', 30_500), 30_000)
})

t.test('a probe that says nothing makes room for another', async t => {
  const breaker = create()
  for (let i = 0; i < 3; i++) fail(breaker, 'k', 0)
  breaker.release(permit(breaker, 'k', 30_000), 'neutral', 30_100)
  t.ok(permit(breaker, 'k', 30_100).probe)
})

t.test('neutral outcomes never open it', async t => {
  const breaker = create()
  for (let i = 0; i < 50; i++) breaker.release(permit(breaker, 'k', 0), 'neutral', 0)
  t.equal(breaker.size, 0)
})

t.test('when a probe is lost, another goes after as long again', async t => {
  const breaker = create()
  for (let i = 0; i < 3; i++) fail(breaker, 'k', 0)
  t.ok(permit(breaker, 'k', 30_000).probe)
  t.equal(breaker.acquire('k', 59_999), 1_000)
  t.ok(permit(breaker, 'k', 60_000).probe)
})

t.test('failures of requests that were under way neither add to an open circuit nor close it', async t => {
  const breaker = create()
  const late = permit(breaker, 'k', 0)
  for (let i = 0; i < 3; i++) fail(breaker, 'k', 0)
  breaker.release(late, 'failure', 29_999)
  t.ok(permit(breaker, 'k', 30_000).probe)
})

t.test('a key whose failures are long ago is forgotten', async t => {
  const breaker = create()
  fail(breaker, 'closed', 0)
  for (let i = 0; i < 3; i++) fail(breaker, 'open', 0)
  breaker.sweep(59_999)
  t.equal(breaker.size, 2)
  breaker.sweep(60_000)
  t.equal(breaker.size, 1)
  breaker.sweep(90_000)
  t.equal(breaker.size, 0)
})

t.test('only so many failing keys are kept, the newest among them', async t => {
  const breaker = createBreaker(settings, createTable({ ...breakerShape(3), slots: 4 }))
  for (let i = 0; i < 100; i++) for (let times = 0; times < 3; times++) fail(breaker, `k${i}`, 0)
  t.equal(breaker.size, 4)
  t.equal(breaker.acquire('k99', 0), 30_000)
})
