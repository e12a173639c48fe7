/** Threat T30 of SECURITY.md. */

import t from 'tap'
import { breakerShape, type CircuitOutcome, Breaker as ClockedBreaker, type Permit } from '../../src/limits/breaker.ts'
import { createTable } from '../fixtures/table.ts'

const settings = { failures: 3, windowMs: 60_000, openMs: 30_000 }
const create = () => timed(new ClockedBreaker(settings, createTable(breakerShape(3))))

type Breaker = ReturnType<typeof timed>

/** Takes times in the place of a clock. */
function timed(breaker: ClockedBreaker) {
  const at = (now: number) => ({ steady: () => now })
  return {
    acquire: (origin: string, agentId: string, now: number) => breaker.acquire(origin, agentId, at(now)),
    release: (taken: Permit, outcome: CircuitOutcome, now: number) => breaker.release(taken, outcome, at(now)),
    sweep: (now: number) => breaker.sweep(now),
    openAt: (now: number) => breaker.openAt(now),
    size: () => breaker.size,
  }
}

function permit(breaker: Breaker, key: string, now: number, agent = 'a'): Permit {
  const taken = breaker.acquire(key, agent, now)
  if (typeof taken === 'number') throw new Error(`no permit for ${taken} ms`)
  return taken
}

function fail(breaker: Breaker, key: string, now: number, agent = 'a'): void {
  breaker.release(permit(breaker, key, now, agent), 'failure', now)
}

/** Opens the circuit of an agent. */
function open(breaker: Breaker, now: number, agent = 'a'): void {
  for (let i = 0; i < 3; i++) fail(breaker, 'k', now, agent)
}

t.test('the circuit opens after so many failures and says for how long', async t => {
  const breaker = create()
  fail(breaker, 'k', 0)
  fail(breaker, 'k', 1_000)
  t.type(breaker.acquire('k', 'a', 1_500), 'object')
  fail(breaker, 'k', 2_000)
  t.equal(breaker.acquire('k', 'a', 2_000), 30_000)
  t.equal(breaker.acquire('k', 'a', 31_999), 1)
})

t.test('a circuit that opens, closes or fails its probe is published once, with its owner', async t => {
  const told: string[] = []
  const breaker = timed(
    new ClockedBreaker(settings, createTable(breakerShape(3)), ({ change, origin, agentId }) =>
      told.push(`${change} ${origin} ${agentId}`),
    ),
  )
  open(breaker, 0)
  open(breaker, 1_000, 'b')
  t.strictSame(told, ['opened k a', 'opened k undefined'])
  breaker.release(permit(breaker, 'k', 40_000), 'success', 40_000)
  t.strictSame(told.slice(2), ['closed k undefined'])
  for (let i = 0; i < 3; i++) breaker.release(permit(breaker, 'other', 50_000), 'unreachable', 50_000)
  breaker.release(permit(breaker, 'other', 90_000), 'failure', 90_000)
  t.strictSame(told.slice(3), ['opened other undefined', 'probeFailed other undefined'])
})

t.test('failures outside the window do not count', async t => {
  const breaker = create()
  fail(breaker, 'k', 0)
  fail(breaker, 'k', 1)
  fail(breaker, 'k', 60_001)
  t.type(breaker.acquire('k', 'a', 60_001), 'object')
})

t.test('half-open lets exactly one probe out; its success closes the circuit', async t => {
  const breaker = create()
  open(breaker, 0)
  const probe = permit(breaker, 'k', 30_000)
  t.ok(probe.agentProbe > 0)
  t.equal(breaker.acquire('k', 'a', 30_000), 1_000, 'a second one waits')
  breaker.release(probe, 'success', 30_100)
  t.equal(permit(breaker, 'k', 30_100).agentProbe, 0)
  breaker.sweep(90_000)
  t.equal(breaker.size(), 0)
})

t.test('a failed probe opens the circuit again', async t => {
  const breaker = create()
  open(breaker, 0)
  breaker.release(permit(breaker, 'k', 30_000), 'failure', 30_500)
  t.equal(breaker.acquire('k', 'a', 30_500), 30_000)
})

t.test('a probe that says nothing makes room for another', async t => {
  const breaker = create()
  open(breaker, 0)
  breaker.release(permit(breaker, 'k', 30_000), 'neutral', 30_100)
  t.ok(permit(breaker, 'k', 30_100).agentProbe > 0)
})

t.test('neutral outcomes never open it', async t => {
  const breaker = create()
  for (let i = 0; i < 50; i++) breaker.release(permit(breaker, 'k', 0), 'neutral', 0)
  t.equal(breaker.size(), 0)
})

t.test('when a probe is lost, another goes after as long again', async t => {
  const breaker = create()
  open(breaker, 0)
  t.ok(permit(breaker, 'k', 30_000).agentProbe > 0)
  t.equal(breaker.acquire('k', 'a', 59_999), 1_000)
  t.ok(permit(breaker, 'k', 60_000).agentProbe > 0)
})

t.test('failures of requests that were under way neither add to an open circuit nor close it', async t => {
  const breaker = create()
  const late = permit(breaker, 'k', 0)
  open(breaker, 0)
  breaker.release(late, 'failure', 29_999)
  t.ok(permit(breaker, 'k', 30_000).agentProbe > 0)
})

t.test('a key whose failures are long ago is forgotten', async t => {
  const breaker = create()
  fail(breaker, 'closed', 0)
  for (let i = 0; i < 3; i++) fail(breaker, 'open', 0)
  breaker.sweep(59_999)
  t.equal(breaker.size(), 3)
  breaker.sweep(60_000)
  t.equal(breaker.size(), 1, 'that of the agent is still open')
  breaker.sweep(90_000)
  t.equal(breaker.size(), 0)
})

t.test('only so many failing keys are kept, the newest among them', async t => {
  const breaker = timed(new ClockedBreaker(settings, createTable({ ...breakerShape(3), slots: 4 })))
  for (let i = 0; i < 100; i++) for (let times = 0; times < 3; times++) fail(breaker, `k${i}`, 0)
  t.equal(breaker.size(), 4)
  t.equal(breaker.acquire('k99', 'a', 0), 30_000)
})

t.test('what one agent saw opens the circuit for that agent alone', async t => {
  const breaker = create()
  for (let i = 0; i < 10; i++) if (typeof breaker.acquire('k', 'a', 0) === 'object') fail(breaker, 'k', 0)
  t.equal(breaker.acquire('k', 'a', 0), 30_000)
  t.type(breaker.acquire('k', 'b', 0), 'object')
  t.equal(breaker.openAt(0), 1)
})

t.test('when the circuits of two agents have opened within the window, that of all does', async t => {
  const breaker = create()
  open(breaker, 0)
  fail(breaker, 'k', 10, 'b')
  t.type(breaker.acquire('k', 'c', 10), 'object', 'a single failure of another agent is not enough')
  for (let i = 0; i < 2; i++) fail(breaker, 'k', 20, 'b')
  t.equal(breaker.acquire('k', 'c', 20), 30_000)

  const later = create()
  open(later, 0)
  open(later, 60_000, 'b')
  t.type(later.acquire('k', 'c', 60_000), 'object')
})

t.test('one agent whose circuit opens twice is still one agent', async t => {
  const breaker = create()
  open(breaker, 0)
  breaker.release(permit(breaker, 'k', 30_000), 'success', 30_000)
  open(breaker, 30_001)
  t.type(breaker.acquire('k', 'b', 30_001), 'object')
})

t.test('failures to connect open it for all, whoever saw them', async t => {
  const breaker = create()
  for (let i = 0; i < 3; i++) breaker.release(permit(breaker, 'k', 0), 'unreachable', 0)
  t.equal(breaker.acquire('k', 'b', 0), 30_000)
  const probe = permit(breaker, 'k', 30_000, 'b')
  t.ok(probe.probe > 0)
  t.equal(breaker.acquire('k', 'a', 30_000), 1_000)
  breaker.release(probe, 'unreachable', 30_001)
  t.equal(breaker.acquire('k', 'a', 30_001), 30_000)
  breaker.release(permit(breaker, 'k', 60_001, 'a'), 'success', 60_001)
  t.type(breaker.acquire('k', 'b', 60_001), 'object')
})

for (const outcome of ['failure', 'unreachable', 'neutral', 'success'] as const) {
  t.test(`a probe that was overtaken counts for nothing, ${outcome}`, async t => {
    const breaker = create()
    open(breaker, 0)
    const slow = permit(breaker, 'k', 30_000)
    const next = permit(breaker, 'k', 60_000)
    breaker.release(slow, outcome, 60_001)
    t.equal(breaker.acquire('k', 'a', 60_001), 1_000, 'the next probe is still out')
    breaker.release(next, 'success', 60_002)
    breaker.release(slow, outcome, 60_003)
    t.equal(permit(breaker, 'k', 60_003).agentProbe, 0, 'the circuit stays closed')
  })
}
