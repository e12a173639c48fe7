/** Threats T02, T04 of SECURITY.md; test/security/ssrf.ts has the hosts, and test/proxy/ways-out.ts the other ways out. */
import { networkInterfaces } from 'node:os'
import t from 'tap'
import { startGateway } from '../fixtures/gateway.ts'

const asked: string[] = []
const gateway = await startGateway(t, {
  alone: 'it knows its own address, and not that of a balancer',
  config: { System: { RateLimit: { Burst: 10_000 } } },
  lookup: async name => {
    asked.push(name)
    return ['127.0.0.1']
  },
})

t.test('the gateway cannot be reached through itself, by any of its addresses', async t => {
  const { token } = await gateway.agent()
  const own = Object.values(networkInterfaces()).flatMap(list => list ?? [])
  const hosts = own.map(({ address, family }) => (family === 'IPv6' ? `[${address.split('%')[0]}]` : address))
  for (const host of ['127.0.0.1', '127.0.0.2', '[::1]', '0.0.0.0', '[::]', 'alias.example', ...hosts]) {
    const answer = await gateway.proxy(token, `http://${host}:${gateway.port}/health`)
    t.strictSame(
      { status: answer.status, code: answer.headers.get('gateway-error') },
      { status: 403, code: 'egress_denied' },
    )
    await answer.text()
  }
  t.strictSame(asked, ['alias.example'])
})

t.test('a request that policy denies causes no look-up: nothing leaves in a DNS question', async t => {
  asked.length = 0
  const agent = await gateway.agent({ policyName: null })
  const answer = await gateway.proxy(agent.token, 'http://secret-in-a-name.example/')
  t.equal(answer.status, 403)
  t.strictSame(asked, [])
})
