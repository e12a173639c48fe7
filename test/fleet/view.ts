import t from 'tap'
import type { MemberRow, ObservedPeer } from '../../src/fleet/peers.ts'
import { type FleetReading, viewFleet } from '../../src/fleet/view.ts'

const row = (name: string, more: Partial<MemberRow> = {}): MemberRow => ({
  ...{
    id: `id-${name}`,
    beat: 1,
    applied: 7,
    name,
    version: '1.0.0',
    started: 0,
    digests: { rules: 'a' },
    addresses: [],
  },
  ...more,
})
const seen = (row: MemberRow, since = 99_900): ObservedPeer<MemberRow> => ({ row, since, hasTurned: true })
const reading = (...members: ObservedPeer<MemberRow>[]): FleetReading => ({
  ...{ self: 'id-own', peers: members, newest: 7, applied: 7, turnMs: 3, fencedAfter: 10_200, at: 100_000 },
})
const instant = { now: 1_000_000, isOpen: true }
const own = seen(row('own', { applied: 5 }), 90_000)

t.test('this gateway is seen as it is now, whatever its row says', async t => {
  t.match(viewFleet(reading(own), instant).members, [
    { name: 'own', isThis: true, state: 'Serving', lag: 0, lastSeenAt: 1_000_000, differs: [] },
  ])
  t.match(viewFleet(reading(own), { ...instant, isOpen: false }).members, [{ state: 'Fenced' }])
})

t.test('another one serves, loads, is silent or is fenced, by its last turn', async t => {
  const views = viewFleet(
    reading(
      own,
      seen(row('a', { applied: 4 })),
      seen(row('b', { applied: -1 })),
      seen(row('c'), 97_999),
      seen(row('d'), 89_799),
    ),
    instant,
  ).members
  t.match(views, [
    { name: 'a', state: 'Serving', lag: 3, lastSeenAt: 999_900 },
    { name: 'b', state: 'Loading', lag: null },
    { name: 'c', state: 'Silent' },
    { name: 'd', state: 'Fenced', lastSeenAt: 989_799 },
    { name: 'own' },
  ])
})

t.test('what differs is named, but for a gateway that has not reported yet', async t => {
  const digests = { rules: 'a', settings: 'x' }
  const here = seen(row('own', { digests }))
  const others = [seen(row('a', { digests: { rules: 'b', settings: 'x' } })), seen(row('b', { digests: {} }))]
  t.match(
    viewFleet(reading(here, ...others), instant).members.map(({ differs }) => differs),
    [['rules'], [], []],
  )
})
