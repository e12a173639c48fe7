/** Threats T02, T04 of SECURITY.md. */
import { networkInterfaces } from 'node:os'
import { createClock } from '../fixtures/clock.ts'
import { startGateway } from '../fixtures/gateway.ts'
import { startOrigin } from '../fixtures/origin.ts'
import t, { type Test } from '../fixtures/tap.ts'

const names: Record<string, readonly string[]> = {}
const gateway = await startGateway(t, {
  config: { Egress: { DenyHosts: ['denied.example'] }, System: { RateLimit: { Burst: 10_000 } } },
  lookup: async name => names[name] ?? [],
})
const { token } = await gateway.agent()

async function denied(t: Test, target: string): Promise<void> {
  const answer = await gateway.proxy(token, target)
  t.equal(answer.status, 403, target)
  t.equal(answer.headers.get('gateway-error'), 'egress_denied', target)
  await answer.text()
}

t.test('the gateway cannot be reached through itself, by any of its addresses', async t => {
  names['alias.example'] = ['127.0.0.1']
  const own = Object.values(networkInterfaces()).flatMap(list => list ?? [])
  const hosts = own.map(({ address, family }) => (family === 'IPv6' ? `[${address.split('%')[0]}]` : address))
  for (const host of ['127.0.0.1', '127.0.0.2', '[::1]', '0.0.0.0', '[::]', 'alias.example', ...hosts]) {
    await denied(t, `http://${host}:${gateway.port}/health`)
  }
})

t.test('metadata services are refused by address and by name', async t => {
  names['innocent.example'] = ['169.254.169.254']
  for (const host of ['169.254.169.254', '169.254.170.2', '168.63.129.16', '100.100.100.200', '[fd00:ec2::254]']) {
    await denied(t, `http://${host}/latest/meta-data/`)
  }
  await denied(t, 'http://metadata.google.internal/')
  await denied(t, 'http://innocent.example/')
})

t.test('a name with one refused address among good ones is refused', async t => {
  const origin = await startOrigin(t)
  names['mixed.example'] = ['127.0.0.1', '169.254.169.254']
  await denied(t, `http://mixed.example:${origin.port}/`)
  t.equal(origin.connections(), 0, 'no socket was opened')
})

t.test('the connection goes to the address that was checked, whatever the name says later', async t => {
  const origin = await startOrigin(t)
  let asked = 0
  const rebinding = await startGateway(t, {
    lookup: async () => (asked++ === 0 ? ['127.0.0.1'] : ['169.254.169.254']),
  })
  const agent = await rebinding.agent()
  const answer = await rebinding.proxy(agent.token, `http://rebind.example:${origin.port}/`)
  t.equal(answer.status, 200)
  t.equal(asked, 1, 'one look-up a request, and its answer is what was dialled')
  t.equal(origin.seen[0]?.headers.host, `rebind.example:${origin.port}`)
})

t.test('an answer of the resolver is used for 30 seconds at most, and then checked anew', async t => {
  const clock = createClock(Date.now())
  const origin = await startOrigin(t)
  let address = '127.0.0.1'
  // Each thread keeps the answers that it got: one of them is looked at here.
  const config = { System: { Server: { Threads: 1 } } }
  const rebinding = await startGateway(t, { clock, config, lookup: async () => [address] })
  const agent = await rebinding.agent()
  const target = `http://rebind.example:${origin.port}/`
  t.equal((await rebinding.proxy(agent.token, target)).status, 200)
  address = '169.254.169.254'
  clock.advance(29_000)
  t.equal((await rebinding.proxy(agent.token, target)).status, 200)
  clock.advance(1_001)
  const answer = await rebinding.proxy(agent.token, target)
  t.equal(answer.status, 403)
  t.equal(origin.seen.length, 2)
})

t.test('a denied host is refused before any look-up', async t => {
  names['denied.example'] = []
  await denied(t, 'http://denied.example/')
})

t.test('a request that policy denies causes no look-up: nothing leaves in a DNS question', async t => {
  let asked = 0
  const quiet = await startGateway(t, {
    lookup: async () => {
      asked += 1
      return []
    },
  })
  const agent = await quiet.agent({ policyName: null })
  const answer = await quiet.proxy(agent.token, 'http://secret-in-a-name.example/')
  t.equal(answer.status, 403)
  t.equal(asked, 0)
})

t.test('private networks are refused when the setting says so', async t => {
  const origin = await startOrigin(t)
  const strict = await startGateway(t, { config: { Egress: { DenyPrivateNetworks: true } } })
  const agent = await strict.agent()
  const answer = await strict.proxy(agent.token, origin.url)
  t.equal(answer.status, 403)
  t.equal(answer.headers.get('gateway-error'), 'egress_denied')
  t.equal(origin.connections(), 0)
})
