import { once } from 'node:events'
import { chmodSync, copyFileSync, readFileSync, statSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { openApi, readOperations } from '../../src/api/openapi.ts'
import { call, callSecurely } from '../fixtures/call.ts'
import { startBare } from '../fixtures/gateway.ts'
import { startOrigin } from '../fixtures/origin.ts'
import { runMain, runToEnd } from '../fixtures/process.ts'
import { testdir } from '../fixtures/testdir.ts'

const json = { 'Content-Type': 'application/json' }
const loopback = { host: '127.0.0.1' }

/** A gateway with a place for people, two callers, and the addresses of both places. */
async function startSplit(t: Test, more: object = {}, threads = 1) {
  const Server = { Management: { Enabled: true, Port: 0 }, Threads: threads, ...more }
  const { addresses, directory } = await startBare(t, { config: { System: { Server } }, alone: 'it has two places' })
  const [agents, people] = addresses
  const at = (port: number | undefined, path: string, token?: string) =>
    call({ ...loopback, port, path, headers: token === undefined ? {} : { Authorization: `Bearer ${token}` } })
  const post = (port: number | undefined, path: string, body: object, token?: string) =>
    call(
      {
        ...{ ...loopback, port, path, method: 'POST' },
        headers: { ...json, ...(token !== undefined && { Authorization: `Bearer ${token}` }) },
      },
      JSON.stringify(body),
    )
  const admin = JSON.parse(readFileSync(join(directory, 'data/bootstrap.json'), 'utf8'))
  const login = async (port: number | undefined, who: object) =>
    JSON.parse((await post(port, '/tokens', who)).text).token
  const adminToken = await login(people?.port, admin)
  const registered = await post(
    people?.port,
    '/agents',
    { name: 'tester', ownerId: 'team', clientSecret: 'a-secret-of-the-tests', policyName: 'allow-all' },
    adminToken,
  )
  const { id } = JSON.parse(registered.text)
  const agentToken = await login(agents?.port, { agentId: id, clientSecret: 'a-secret-of-the-tests' })
  return { addresses, directory, agents: agents?.port, people: people?.port, at, post, adminToken, agentToken }
}

for (const threads of [1, 2]) {
  const counted = threads === 1 ? 'one thread' : 'two threads'

  t.test(`T16 agents cannot reach what is for people, with ${counted}`, async t => {
    const gateway = await startSplit(t, {}, threads)
    for (const { method, path, forAgents } of readOperations(openApi)) {
      const asked = path.replace(/\{\w+\}/, '0b0e9c3e-5a3b-4a52-9b3f-0a4a4d5a4f10')
      const url = `http://127.0.0.1:${gateway.agents}${asked}`
      const answer = await fetch(url, { method, headers: { Authorization: `Bearer ${gateway.adminToken}` } })
      const text = await answer.text()
      const isHere = !text.includes('This address serves agents.')
      t.equal(isHere, forAgents, `${method} ${path}: ${answer.status}`)
      if (!isHere) t.equal(answer.status, 404)
    }
  })

  t.test(`agents call upstreams and see their own held requests where they are, with ${counted}`, async t => {
    const origin = await startOrigin(t, (_, res) => res.end('hello'))
    const { agents, agentToken } = await startSplit(t, {}, threads)
    const headers = { 'Gateway-Authorization': `Bearer ${agentToken}` }
    t.match(await call({ ...loopback, port: agents, path: `/proxy/${origin.url}/`, headers }), {
      status: 200,
      text: 'hello',
    })
    t.match(await call({ ...loopback, port: agents, path: '/health' }), { status: 200 })
    const own = await call({
      ...{ ...loopback, port: agents, path: '/hitl/status/0b0e9c3e-5a3b-4a52-9b3f-0a4a4d5a4f10' },
      headers: { Authorization: `Bearer ${agentToken}` },
    })
    t.match(own, { status: 404, text: /Nothing exists under this path, id or name/ })
  })
}

t.test('people have the whole API, the console and the documentation at their address, and no proxy', async t => {
  const origin = await startOrigin(t)
  const { people, at, adminToken, agentToken } = await startSplit(t)
  for (const path of ['/agents', '/hitl', '/health']) t.equal((await at(people, path, adminToken)).status, 200, path)
  t.equal((await at(people, '/open-api')).status, 200)
  t.notMatch((await at(people, '/console/')).text, /This address serves agents/, 'built or not, the console is here')
  const headers = { 'Gateway-Authorization': `Bearer ${agentToken}` }
  const proxied = await call({ ...loopback, port: people, path: `/proxy/${origin.url}/`, headers })
  t.match(proxied, { status: 404, headers: { 'gateway-error': 'not_found' } })
  t.match(JSON.parse(proxied.text).detail, /this is the address for people/)
  t.equal(origin.seen.length, 0)
})

t.test('virtual hosts are not served to people, whose names they are not', async t => {
  const origin = await startOrigin(t)
  const Hosts = [{ Host: 'api.gateway.test', Upstream: origin.url }]
  const Server = { Management: { Enabled: true, Port: 0 } }
  const { addresses } = await startBare(t, { config: { System: { Server }, Hosts }, alone: 'it has two places' })
  const statuses = await Promise.all(
    addresses.map(
      async ({ port }) => (await call({ ...loopback, port, headers: { Host: 'api.gateway.test' } })).status,
    ),
  )
  t.strictSame(statuses, [401, 404], 'the agent must sign in; for people there is nothing under /')
  t.equal(origin.seen.length, 0)
})

t.test('an agent that calls the address of people through the gateway is refused', async t => {
  const { agents, people, agentToken } = await startSplit(t)
  const headers = { 'Gateway-Authorization': `Bearer ${agentToken}` }
  const path = `/proxy/http://127.0.0.1:${people}/agents`
  t.match(await call({ ...loopback, port: agents, path, headers }), {
    status: 403,
    headers: { 'gateway-error': 'egress_denied' },
  })
})

t.test('agents that take all connections take none from people', async t => {
  const { agents, people, at } = await startSplit(t, { MaxConnections: 2 })
  const held = [1, 2].map(() => connect(Number(agents), '127.0.0.1'))
  await Promise.all(held.map(socket => once(socket, 'connect')))
  // A connection counts once the gateway has taken it, which its answer shows.
  for (const socket of held) {
    socket.write('GET /health HTTP/1.1\r\nHost: gateway\r\n\r\n')
    await once(socket, 'data')
  }
  t.teardown(() => {
    for (const socket of held) socket.destroy()
  })
  await t.rejects(at(agents, '/health'), 'there is no connection left for agents')
  t.equal((await at(people, '/health')).status, 200)
})

t.test('a unix socket can be the place of people, with the mode of the other', async t => {
  const Management = { Enabled: true, UnixPath: 'people.sock' }
  const config = { System: { Server: { Management, Unix: { Mode: '0600' } } } }
  const { addresses, directory } = await startBare(t, { config, alone: 'it has two places' })
  const path = join(directory, 'people.sock')
  t.match(addresses, [{ only: 'proxy' }, { url: `unix:${path}`, only: 'management' }])
  t.equal((statSync(path).mode & 0o777).toString(8), '600')
  t.match(await call({ socketPath: path, path: '/open-api' }), { status: 200 })
})

t.test('it is TLS where the address of agents is', async t => {
  const directory = testdir(t)
  for (const name of ['cert.pem', 'key.pem']) {
    copyFileSync(fileURLToPath(new URL(`../fixtures/tls/${name}`, import.meta.url)), join(directory, name))
    chmodSync(join(directory, name), 0o600)
  }
  const Tls = { CertificateFile: 'cert.pem', KeyFile: 'key.pem' }
  const config = { System: { Server: { Management: { Enabled: true, Port: 0 }, Tls } } }
  const { addresses } = await startBare(t, { config, directory, alone: 'it has two places' })
  for (const { url, port } of addresses) {
    t.match(url, /^https:/)
    t.match(await callSecurely({ port, path: '/health', rejectUnauthorized: false }), { status: 200 })
  }
})

t.test('the command line finds people where their address is', async t => {
  const { directory, people } = await startSplit(t)
  const env = {
    SYSTEM__SERVER__MANAGEMENT__ENABLED: 'true',
    SYSTEM__SERVER__MANAGEMENT__PORT: String(people),
    SYSTEM__SERVER__MANAGEMENT__PUBLICURL: 'https://review.example.com',
  }
  const { code, out } = await runToEnd(t, ['console'], { cwd: directory, env })
  t.equal(code, 0)
  t.match(out, /^https:\/\/review\.example\.com\/console\/#code=/, 'and browsers at the public one')
  t.equal((await runToEnd(t, ['check'], { cwd: directory, env: { ...env, SYSTEM__SERVER__HTTP__PORT: '0' } })).code, 0)
})

t.test('the start names both addresses', async t => {
  const cwd = testdir(t, { policies: {} })
  const env = {
    SYSTEM__SERVER__HTTP__PORT: '0',
    SYSTEM__SERVER__MANAGEMENT__ENABLED: 'true',
    SYSTEM__SERVER__MANAGEMENT__PORT: '0',
  }
  const run = runMain(t, ['serve'], { cwd, env })
  await run.shows(/agent-gateway is ready/)
  const [, agents, people] =
    /Address +http:\/\/127\.0\.0\.1:(\d+)\n +For people +http:\/\/127\.0\.0\.1:(\d+)\n/.exec(run.err()) ?? []
  t.ok(agents)
  t.match(run.err(), `Console        http://127.0.0.1:${people}/console/`)
  run.child.kill('SIGTERM')
  t.equal(await run.ended, 0)
})

t.test('a port for people that is in use names its setting', async t => {
  const { people } = await startSplit(t)
  const config = { System: { Server: { Management: { Enabled: true, Port: people } } } }
  await t.rejects(startBare(t, { config, directory: testdir(t) }), { message: /set System:Server:Management:Port\.$/ })
})
