import t from 'tap'
import { createClock } from '../fixtures/clock.ts'
import { gatewayThreads, startGateway } from '../fixtures/gateway.ts'

for (const threads of new Set([gatewayThreads, 2])) {
  t.test(`failed logins are logged once a minute for each agent id and address, ${threads} threads`, async t => {
    const config = { System: { Server: { Threads: threads } } }
    const clock = createClock()
    const gateway = await startGateway(t, { config, clock, alone: 'each gateway logs those that it saw' })
    const { id, clientSecret } = await gateway.agent()
    const login = (agentId: string, secret: string) =>
      gateway.manage('POST', '/tokens', { agentId, clientSecret: secret }, null)
    for (let i = 0; i < 5; i++) t.equal((await login(id.toUpperCase(), `guess ${i}`)).status, 401)
    await login('\u202eodd', 'x')
    t.equal((await login(id, clientSecret)).status, 429)
    const failed = gateway.log.filter(({ message }) => message === 'login failed')
    t.strictSame(
      failed.map(({ agentId, clientIp }) => [agentId, clientIp]),
      [
        [id, '127.0.0.1'],
        [undefined, '127.0.0.1'],
      ],
    )
    t.match(
      gateway.log.filter(({ limit }) => limit !== undefined),
      [{ limit: 'logins', agentId: id }],
    )
    t.notMatch(JSON.stringify(gateway.log), /guess|odd/)
  })
}
