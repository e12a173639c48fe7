/** Identity is of the tunnel, rights are of each request in it. Threats T42, T46, T70. */
import { once } from 'node:events'
import t, { type Test } from 'tap'
import { createClock } from '../fixtures/clock.ts'
import {
  absolute,
  connectBytes,
  openSecure,
  openTunnel,
  secureSetup,
  startForward,
  valuesIn,
} from '../fixtures/forward.ts'
import { openHttp2 } from '../fixtures/forward-http2.ts'
import { eventually, merge, type TestAgent } from '../fixtures/gateway.ts'
import { startOrigin, startSecureOrigin } from '../fixtures/origin.ts'

const origin = await startSecureOrigin(t)
const to = `idp.test:${origin.port}`
const get = `GET / HTTP/1.1\r\nHost: ${to}\r\n\r\n`

t.beforeEach(() => {
  origin.seen.length = 0
})

for (const threads of [1, 2]) {
  t.test(`with ${threads === 1 ? 'one thread' : 'two threads'}`, async t => {
    const more = { Proxy: { Http2Hosts: ['idp.test'] }, System: { Server: { Threads: threads } } }
    const config = merge(secureSetup.config ?? {}, more)
    const gateway = await startForward(t, { ...secureSetup, config })
    const open = (t: Test, { token }: Pick<TestAgent, 'token'>) =>
      openSecure(t, gateway, { to, authorization: `Bearer ${token}` })
    const newKey = async ({ id }: TestAgent) => {
      const { key, id: keyId } = JSON.parse((await gateway.manage('POST', `/agents/${id}/keys`, { name: 'own' })).text)
      return { token: `${key}`, revoke: () => gateway.manage('DELETE', `/keys/${keyId}`) }
    }

    t.test('T46 idle tunnels of an agent that may no longer act are closed, and no others', async t => {
      for (const action of ['revoke', 'quarantine', 'deactivate']) {
        const [bot, other] = [await gateway.agent(), await gateway.agent()]
        const own = await Promise.all([1, 2, 3].map(() => open(t, bot)))
        own[0]?.write(get)
        await own[0]?.until(/hello from upstream/)
        const kept = await open(t, other)
        await gateway.manage('POST', `/agents/${bot.id}/${action}`)
        for (const client of own) t.notMatch(await client.closed(), /HTTP\/1\.1 (?!200)/, action)
        kept.write(get)
        t.match(await kept.until(/hello from upstream/), /^HTTP\/1\.1 200 /)
      }
    })

    t.test('T46 connections of HTTP/2 of a revoked agent are closed, and no others', async t => {
      const [bot, other] = [await gateway.agent(), await gateway.agent()]
      const connect = ({ token }: TestAgent) => openHttp2(t, gateway, { to, authorization: `Bearer ${token}` })
      const own = await Promise.all([1, 2, 3].map(() => connect(bot)))
      const kept = await connect(other)
      for (const client of [...own, kept]) t.equal((await client.send()).status, 200)
      const closed = own.map(({ session }) => once(session, 'close'))
      await gateway.manage('POST', `/agents/${bot.id}/revoke`)
      await Promise.all(closed)
      t.match(await kept.send(), { status: 200, body: /hello from upstream/ })
    })

    t.test('T46 tunnels that a revoked key has opened are closed, and those of another key are not', async t => {
      const bot = await gateway.agent()
      const [first, second] = [await newKey(bot), await newKey(bot)]
      const [gone, kept] = [await open(t, first), await open(t, second)]
      await first.revoke()
      t.equal(await gone.closed(), '')
      kept.write(get)
      t.match(await kept.until(/hello from upstream/), /^HTTP\/1\.1 200 /)
    })

    t.test('T46 a request under way gets the reason why its tunnel ends', async t => {
      const slow = await startOrigin(t, () => {})
      const host = `127.0.0.1:${slow.port}`
      const bot = await gateway.agent()
      const key = await newKey(bot)
      const client = await openTunnel(t, gateway, { to: host, authorization: `Bearer ${key.token}` })
      client.write(`GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`)
      await eventually(
        () => slow.seen.length,
        count => count === 1,
      )
      await key.revoke()
      t.match(await client.closed(), /HTTP\/1\.1 407 .*"code":"proxy_authentication_required"/s)
    })
  })
}

t.test('a request whose token has run out gets 407, and so does a CONNECT; the connection closes', async t => {
  const clock = createClock(Date.now())
  const gateway = await startForward(t, { ...secureSetup, clock })
  const { token } = await gateway.agent()
  const client = await openSecure(t, gateway, { to, authorization: `Bearer ${token}` })
  client.write(get)
  await client.until(/hello from upstream/)
  clock.jump(3_601_000)
  client.write(get)
  const answer = (await client.closed()).split('hello from upstream').at(-1) ?? ''
  t.match(answer, /HTTP\/1\.1 407 .*"code":"proxy_authentication_required"/s)
  t.strictSame(valuesIn(answer.slice(answer.indexOf('HTTP/1.1 407')), 'Connection'), ['close'])
  const spent = { authorization: `Bearer ${token}` }
  for (const bytes of [connectBytes({ to, ...spent }), absolute(origin, spent)]) {
    t.match(await gateway.exchange(t, bytes), /^HTTP\/1\.1 407 .*error_description="The token in \S+ has expired"/s)
  }
  t.equal(origin.seen.length, 1)
})

t.test('T32 a client that leaves while its token is verified holds no place', async t => {
  const config = merge(secureSetup.config ?? {}, {
    System: { Server: { HeadersTimeoutSeconds: 120 } },
    ForwardProxy: { MaxTunnelsPerAgent: 1 },
  })
  const gateway = await startForward(t, { ...secureSetup, config })
  const { token } = await gateway.agent()
  const connecting = { to, authorization: `Bearer ${token}` }
  const leaving = await gateway.open(t)
  // The gateway has not seen the token before.
  leaving.socket.end(connectBytes(connecting))
  t.equal(await leaving.closed(), '')
  const next = await openTunnel(t, gateway, connecting)
  t.match(next.text(), /^HTTP\/1\.1 200 /)
})

t.test('each request is decided by the policy of its moment', async t => {
  const gateway = await startForward(t, secureSetup)
  await gateway.policy({ name: 'changing', default: 'Allow' })
  const { token } = await gateway.agent({ policyName: 'changing' })
  const client = await openSecure(t, gateway, { to, authorization: `Bearer ${token}` })
  client.write(get)
  await client.until(/hello from upstream/)
  const changed = await gateway.manage('PUT', '/policies/changing', { name: 'changing', default: 'Deny' })
  t.equal(changed.status, 200, changed.text)
  client.write(get)
  await client.until(/HTTP\/1\.1 403 .*"code":"policy_denied"/s)
  t.equal(origin.seen.length, 1)
})

t.test('T70 the ticket of a TLS session that another agent began gives none of its rights', async t => {
  const gateway = await startForward(t, secureSetup)
  await gateway.policy({ name: 'none', default: 'Deny' })
  const [bot, other] = [await gateway.agent(), await gateway.agent({ policyName: 'none' })]
  const sessions: Buffer[] = []
  const first = await openSecure(t, gateway, { to, authorization: `Bearer ${bot.token}` })
  first.secure.on('session', given => sessions.push(given))
  first.write(get)
  await first.until(/hello from upstream/)
  const session = sessions.at(-1)
  const tls = session === undefined ? {} : { session }
  const second = await openSecure(t, gateway, { to, authorization: `Bearer ${other.token}`, tls })
  t.ok(second.secure.isSessionReused())
  second.write(get)
  await second.until(/HTTP\/1\.1 403 .*"code":"policy_denied"/s)
  t.match((await gateway.exchanges(2)).at(-1), { agentId: other.id, decision: 'Deny' })
  t.equal(origin.seen.length, 1)
})
