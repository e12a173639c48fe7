/** A database that has no time for a gateway: what needs it fails soon, and everything else goes on. */

import t from 'tap'
import { eventually, onDatabase, startGateway } from '../fixtures/gateway.ts'
import { startOrigin } from '../fixtures/origin.ts'
import { createSchema } from '../fixtures/postgres.ts'
import { startTcpProxy } from '../fixtures/tcp-proxy.ts'

/** Long enough for a busy machine to take the turns that it can take. */
const fenceSeconds = 8

t.test('while its only connection is busy, calls get 503 within two seconds; proxying and turns go on', async t => {
  const origin = await startOrigin(t)
  const { admin, ...settings } = { ...(await createSchema(t)), timeoutSeconds: 2 }
  const { Security, Storage } = onDatabase(settings)
  const { PostgreSQL } = Storage as { readonly PostgreSQL: object }
  const config = {
    Security,
    Storage: { Provider: 'PostgreSQL', PostgreSQL: { ...PostgreSQL, PoolSize: 1 } },
    Fleet: { FenceAfterSeconds: fenceSeconds },
  }
  const gateway = await startGateway(t, { config })
  const [agent, other] = [await gateway.agent(), await gateway.agent()]
  await admin.query('begin')
  await admin.query('select from agents where id = $1 for update', [agent.id])
  const start = performance.now()
  // Longer than a gateway serves that takes no turn.
  while (performance.now() - start < 1.5 * fenceSeconds * 1_000) {
    const calls = [gateway.manage('POST', `/agents/${agent.id}/revoke`), gateway.manage('GET', '/audit')] as const
    t.equal((await gateway.proxy(other.token, origin.url)).status, 200)
    const [revoked, read] = await Promise.all(calls)
    t.match(revoked, { status: 503, text: /store_unavailable/ })
    t.ok(read.status === 503 || read.status === 200)
  }
  t.equal((await gateway.proxy(agent.token, origin.url)).status, 200, 'a revocation that was refused has not happened')
  await admin.query('commit')
  const revoke = () => gateway.manage('POST', `/agents/${agent.id}/revoke`)
  await eventually(revoke, ({ status }) => status === 200)
  t.equal((await gateway.proxy(agent.token, origin.url)).status, 403)
})

t.test('an allowed request needs no statement', async t => {
  const origin = await startOrigin(t)
  const settings = { ...(await createSchema(t)), timeoutSeconds: 2 }
  const url = new URL(settings.connectionString)
  const proxy = await startTcpProxy(t, Number(url.port))
  url.port = String(proxy.port)
  // Tokens of shared rates are leased ahead, a hundred times a second at most.
  const often = { System: { RateLimit: { RequestsPerMinute: 100_000, Burst: 10_000 } } }
  const config = {
    ...onDatabase({ ...settings, connectionString: url.href }),
    ...often,
    Fleet: { FenceAfterSeconds: 60, RateLimits: 'PerGateway' },
  }
  const gateway = await startGateway(t, { config })
  const { token } = await gateway.agent()
  t.equal((await gateway.proxy(token, origin.url)).status, 200)
  let sent = 0
  proxy.onSend = () => {
    sent += 1
    return true
  }
  const start = performance.now()
  for (let n = 0; n < 300; n++) t.equal((await gateway.proxy(token, origin.url)).status, 200)
  // Turns and sweeps go on meanwhile, some a second: where the requests take over twelve, this says little.
  const seconds = (performance.now() - start) / 1_000
  t.ok(sent < 50 + 20 * seconds, `${sent} writes to the database in ${seconds} s`)
})
