import t from 'tap'
import type { GatewayReport } from '../../src/fleet/peers.ts'
import { createFleet, type FleetStore } from '../../src/gateway/fleet.ts'
import { createClock } from '../fixtures/clock.ts'
import { testConfig } from '../fixtures/gateway.ts'

/** A fleet of one gateway, and what it tells the others. */
function open(settings = {}) {
  const told: Partial<GatewayReport>[] = []
  const shared: FleetStore = {
    // All that is asked of it.
    fence: { isOpen: true } as FleetStore['fence'],
    fleet: () => ({ peers: [], self: 'a', newest: 0, applied: 0, turnMs: 0, fencedAfter: 0, at: 0 }),
    connections: () => ({ busy: 3, idle: 2, waiting: 1 }),
    publish: what => told.push(what),
  }
  const log = { warn: () => {} }
  return {
    told,
    fleet: createFleet({ config: testConfig(settings), onSettings() {}, clock: createClock(), log }, shared),
  }
}

t.test('the others get a digest of the certificate authority, and a new one when it changes', async t => {
  const { fleet, told } = open()
  const policies = [] as const
  const name = 'certificate authorities'
  fleet.sweep(policies)
  fleet.sweep(policies, 'AA:BB')
  fleet.sweep(policies, 'AA:BB')
  fleet.sweep(policies, 'CC:DD')
  const digests = told.map(({ digests }) => digests?.[name])
  t.equal(digests.length, 3)
  t.equal(digests[0], undefined)
  t.match(digests[1], /^[\w-]{16}$/)
  t.not(digests[2], digests[1])
})

t.test('where the forward proxy of a gateway listens, and its files, are its own', async t => {
  const Ca = { CertificateFile: 'a', KeyFile: 'b' }
  const [one, other, third] = [{}, { Host: '::1', Port: 1, UnixPath: 'a', Ca }, { WaitSeconds: 1 }].map(
    ForwardProxy => {
      const { fleet, told } = open({ ForwardProxy })
      fleet.sweep([])
      return told
    },
  )
  t.strictSame(other, one)
  t.not(JSON.stringify(third), JSON.stringify(one))
})

t.test('metrics tell what the connections to the database do, and how many calls wait for one', async t => {
  const readings = open()
    .fleet.readings()
    .filter(({ name }) => name.startsWith('agent_gateway_store_'))
  t.strictSame(
    readings.map(({ name, labels, value }) => [name.replace('agent_gateway_', ''), labels, value]),
    [
      ['store_connections', { state: 'busy' }, 3],
      ['store_connections', { state: 'idle' }, 2],
      ['store_waiting', undefined, 1],
    ],
  )
})
