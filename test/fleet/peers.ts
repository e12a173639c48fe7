import fc from 'fast-check'
import t from 'tap'
import { Fence } from '../../src/fleet/fence.ts'
import { type PeerRow, Peers } from '../../src/fleet/peers.ts'
import { createClock } from '../fixtures/clock.ts'

const own = { id: 'own', beat: 1, applied: 0 }
const row = (id: string, beat: number, applied: number): PeerRow => ({ id, beat, applied })

t.test('a change is settled when every other gateway has it, loads, or is fenced', async t => {
  const peers = new Peers('own', 10_000)
  const change = { change: 7, answered: 1_000 }
  peers.saw([own], 1_010)
  t.equal(peers.isEverywhere(change, 1_005), true, 'there is no other')
  peers.saw([own, row('a', 1, 6), row('b', 1, 7)], 1_020)
  t.equal(peers.isEverywhere(change, 1_015), false)
  peers.saw([own, row('a', 2, 7), row('b', 2, 7)], 1_030)
  t.equal(peers.isEverywhere(change, 1_025), true)
  peers.saw([own, row('a', 2, 7), row('c', 1, -1)], 1_040)
  t.equal(peers.isEverywhere(change, 1_035), true, 'one that loads does not serve')
  t.equal(peers.count, 3)
})

t.test('one that is silent is left out once it must be fenced', async t => {
  const peers = new Peers('own', 10_000)
  peers.saw([own, row('a', 1, 6)], 500)
  peers.saw([own, row('a', 1, 6)], 8_000)
  const change = { change: 7, answered: 9_000 }
  t.equal(peers.isEverywhere(change, 10_700), false)
  t.equal(peers.isEverywhere(change, 10_701), true, '10.1 s and 100 ms after its beat was first seen')
  peers.saw([own, row('a', 2, 6)], 10_800)
  t.equal(peers.isEverywhere(change, 19_200), false, 'it has beaten again')
  t.equal(peers.isEverywhere(change, 19_201), true, 'so long after the commit whoever took a turn has the change')
})

t.test('rows of gateways that are gone can be removed, with the beat that was seen', async t => {
  const peers = new Peers('own', 10_000)
  peers.saw([own, row('a', 5, 6), row('b', 1, 6)], 1_000)
  peers.saw([own, row('a', 5, 6), row('b', 2, 6)], 15_000)
  t.strictSame(peers.gone(21_400), [])
  t.strictSame(peers.gone(21_401), [row('a', 5, 6)])
})

/**
 * A gateway and one that makes a change, both by hand: whatever turns, stops and looks come in whatever order, the change
 * is never settled while the gateway serves without it.
 */
t.test('nothing is settled while a gateway serves without it', async t => {
  const limit = 10_000
  const step = fc.record({
    what: fc.constantFrom('begin', 'answer', 'look', 'wait', 'wait', 'commit'),
    ms: fc.integer({ min: 0, max: 4_000 }),
  })
  let settled = 0
  fc.assert(
    fc.property(fc.array(step, { minLength: 20, maxLength: 120 }), steps => {
      const clock = createClock()
      const fence = new Fence(clock, limit)
      const peers = new Peers('own', limit)
      const db = { newest: 0, row: row('a', 0, 0), beats: 0 }
      let known = 0
      let turn: { begun: ReturnType<Fence['begin']>; newest: number } | undefined
      let commit: { change: number; answered: number } | undefined
      for (const { what, ms } of steps) {
        clock.advance(ms)
        const now = clock.steady()
        if (what === 'begin' && turn === undefined) {
          // The statement is done at once; its answer comes later, or never in time.
          turn = { begun: fence.begin(), newest: db.newest }
          db.row = row('a', ++db.beats, known)
        } else if (what === 'answer' && turn !== undefined) {
          known = turn.newest
          fence.confirm(turn.begun)
          turn = undefined
        } else if (what === 'commit' && commit === undefined) {
          db.newest += 1
          commit = { change: db.newest, answered: now }
        } else if (what === 'look') {
          peers.saw([own, db.row], now)
        }
        if (commit === undefined || peers.count === 0 || what !== 'look' || !peers.isEverywhere(commit, now)) continue
        settled += 1
        if (fence.isOpen && known < commit.change) throw new Error('it serves without the change')
        commit = undefined
      }
    }),
    { numRuns: 3_000 },
  )
  t.ok(settled > 1_000, `${settled} changes were settled`)
})
