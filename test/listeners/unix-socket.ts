import { existsSync, statSync } from 'node:fs'
import { Agent } from 'node:http'
import { join } from 'node:path'
import t from 'tap'
import { call } from '../fixtures/call.ts'
import { fetchDocumented } from '../fixtures/documented.ts'
import { startBare, startGateway } from '../fixtures/gateway.ts'
import { startOrigin } from '../fixtures/origin.ts'
import { testdir } from '../fixtures/testdir.ts'

const Unix = { Path: 'gateway.sock' }
const only = { Http: { Enabled: false }, Unix }

t.test('a unix socket serves all that the port serves', async t => {
  const origin = await startOrigin(t, (req, res) => req.on('end', () => res.end('hello from upstream')))
  const gateway = await startGateway(t, { config: { System: { Server: { Unix } } }, directory: testdir(t) })
  const socketPath = join(gateway.directory, 'gateway.sock')
  const { token } = await gateway.agent()
  t.match(await call({ socketPath, path: '/health' }), { status: 200, text: /"Healthy"/ })
  t.match(await call({ socketPath, path: '/open-api' }), { status: 200 })
  const headers = { 'Gateway-Authorization': `Bearer ${token}` }
  const answer = await call({ socketPath, path: `/proxy/${origin.url}/a`, method: 'POST', headers }, 'a body')
  t.match(answer, { status: 200, text: 'hello from upstream' })
  t.equal(String(origin.seen[0]?.body), 'a body')
  t.equal((await fetchDocumented(`${gateway.url}/health`)).status, 200, 'and the port does too')
})

t.test('alone, it is all that is listened on; it has its mode, and goes with the gateway', async t => {
  const gateway = await startBare(t, { config: { System: { Server: only } }, directory: testdir(t) })
  const path = join(gateway.directory, 'gateway.sock')
  t.strictSame(gateway.addresses, [{ url: `unix:${path}`, port: undefined }])
  t.equal((statSync(path).mode & 0o777).toString(8), '660')
  await gateway.close()
  t.notOk(existsSync(path))
})

t.test('start-up says that more threads than one have nothing to share there', async t => {
  const Warning =
    'System:Server:Threads: one thread serves, because a unix socket and passed sockets cannot be shared by several'
  for (const [Threads, shown] of [
    [1, []],
    [2, [['Warning', Warning]]],
    ['auto', [['Warning', Warning]]],
  ] as const) {
    const config = { System: { Server: { ...only, Threads } } }
    const { gateway } = await startBare(t, { config, directory: testdir(t) })
    t.equal(gateway.pool, undefined)
    t.strictSame(
      gateway.summary.filter(([name]) => name === 'Warning' || name === 'Threads'),
      shown,
    )
  }
})

t.test('a gateway with nothing to listen on says what to do', async t => {
  const started = startBare(t, { config: { System: { Server: { Http: { Enabled: false } } } } })
  await t.rejects(started, {
    name: 'StartupError',
    message: 'There is nothing to listen on. Set System:Server:Unix:Path, or System:Server:Http:Enabled to true.',
  })
})

t.test(
  'clients over the socket have no address: for policies they are `unix`, and what they forward is not believed',
  async t => {
    const origin = await startOrigin(t)
    const rule = (value: string, effect: string) => ({
      ...{ name: value, effect },
      conditions: [{ field: 'input.clientIp', operator: 'eq', value }],
    })
    const rules = [rule('unix', 'Deny'), rule('192.0.2.7', 'Hitl')]
    const Policies = [{ name: 'not-local', default: 'Allow', rules }]
    const statuses = async (TrustedProxies: readonly string[]) => {
      const config = { System: { Server: { Unix, TrustedProxies } }, Policies }
      const gateway = await startGateway(t, { config, directory: testdir(t) })
      const { token } = await gateway.agent({ policyName: 'not-local' })
      const overUnix = async (forwardedFor: string) => {
        const headers = { 'Gateway-Authorization': `Bearer ${token}`, 'X-Forwarded-For': forwardedFor }
        const socketPath = join(gateway.directory, 'gateway.sock')
        return (await call({ socketPath, path: `/proxy/${origin.url}/`, headers })).status
      }
      t.equal((await gateway.proxy(token, origin.url)).status, 200, 'over TCP there is an address')
      return [await overUnix('198.51.100.1'), await overUnix('192.0.2.7'), await overUnix('unix')]
    }
    t.strictSame(await statuses(['127.0.0.1']), [403, 403, 403], 'whichever address is trusted')
    t.strictSame(await statuses(['unix']), [200, 202, 403], 'unless a trusted proxy is behind the socket')
  },
)

t.test('T32 connections over the socket count as those of one address', async t => {
  const Server = { ...only, MaxConnectionsPerAddress: 2 }
  const { directory } = await startBare(t, { config: { System: { Server } }, directory: testdir(t) })
  const socketPath = join(directory, 'gateway.sock')
  const agents = Array.from({ length: 4 }, () => new Agent({ keepAlive: true }))
  const health = (agent: Agent) => call({ socketPath, path: '/health', agent })
  const answers = await Promise.allSettled(agents.map(health))
  for (const agent of agents) agent.destroy()
  t.equal(answers.filter(({ status }) => status === 'fulfilled').length, 2)
})

t.test('T12 failed logins over the socket slow down those over the socket, and nobody over TCP', async t => {
  const Security = { AgentAuth: { TokenRequests: { PerAddressPerMinute: 3 } } }
  const config = { System: { Server: { Unix } }, Security }
  const gateway = await startGateway(t, { config, directory: testdir(t) })
  const socketPath = join(gateway.directory, 'gateway.sock')
  const headers = { 'Content-Type': 'application/json' }
  const login = (id: number) =>
    JSON.stringify({ agentId: `00000000-0000-4000-8000-00000000000${id}`, clientSecret: 'wrong' })
  const overUnix = (id: number) => call({ socketPath, path: '/tokens', method: 'POST', headers }, login(id))
  for (const id of [1, 2, 3]) t.equal((await overUnix(id)).status, 401)
  t.equal((await overUnix(4)).status, 429)
  const overTcp = await fetchDocumented(`${gateway.url}/tokens`, { method: 'POST', headers, body: login(5) })
  t.equal(overTcp.status, 401)
})
