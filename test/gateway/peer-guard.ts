/** Addresses of other gateways, as the egress guard learns them. */
import t from 'tap'
import { createPeerGuard } from '../../src/gateway/peer-guard.ts'
import { createClock } from '../fixtures/clock.ts'

const hour = 3_600_000
const urls = ['http://10.0.0.7:7080', 'http://10.0.0.7:7081']

t.test('T02 a gateway that has lost its row stays refused for an hour', async t => {
  const clock = createClock()
  let others: readonly string[] = urls
  const told: (readonly string[])[] = []
  const guard = createPeerGuard({
    clock,
    fleet: { others: () => others },
    upstreams: { egress: { setPeers: peers => void told.push(peers) } },
    followers: { pool: undefined },
  })
  guard()
  others = []
  clock.advance(hour)
  guard()
  t.strictSame(told, [urls])
  others = urls.slice(0, 1)
  guard()
  others = []
  clock.advance(1)
  guard()
  t.strictSame(told, [urls, urls.slice(0, 1)])
  clock.advance(hour)
  guard()
  t.strictSame(told, [urls, urls.slice(0, 1), []])
})
