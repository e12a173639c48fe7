/** Threat T31 of SECURITY.md. */
import type { ServerResponse } from 'node:http'
import t from 'tap'
import { eventually, startGateway } from '../fixtures/gateway.ts'
import { startOrigin } from '../fixtures/origin.ts'

/** Each thread has its part of the connections: to the last one it shows with one thread. */
const oneThread = { System: { Server: { Threads: 1 } } }

const until = (holds: () => boolean) => eventually(holds, so => so)

t.test('an agent has half of the connections of an origin, some requests wait for one, and more are 503', async t => {
  const waiting: ServerResponse[] = []
  const origin = await startOrigin(t, (req, res) => {
    if (req.url === '/') waiting.push(res)
    else res.end('done')
  })
  const gateway = await startGateway(t, {
    alone: 'connections to upstreams are a gateway’s own',
    config: { ...oneThread, Proxy: { MaxConnectionsPerOrigin: 4, MaxWaiting: 1 } },
  })
  const { token } = await gateway.agent()
  const calls = [1, 2].map(() => gateway.proxy(token, `${origin.url}/`))
  await until(() => waiting.length === 2)
  const third = gateway.proxy(token, `${origin.url}/third`)
  const fourth = gateway.proxy(token, `${origin.url}/fourth`)
  // One of the two waits, whichever came first.
  const refused = await Promise.race([third, fourth])
  t.equal(refused.status, 503)
  t.equal(refused.headers.get('gateway-error'), 'upstream_busy')
  t.equal(refused.headers.get('retry-after'), '1')
  t.equal(origin.connections(), 2)
  for (const res of waiting.splice(0)) res.end('done')
  for (const answer of await Promise.all(calls)) t.equal(answer.status, 200)
  t.strictSame([(await third).status, (await fourth).status].sort(), [200, 503])
  t.equal(origin.connections(), 2, 'the one that waited got a connection that was there')
})

t.test('all origins together have so many; one that is idle makes room', async t => {
  const gateway = await startGateway(t, {
    config: { ...oneThread, Proxy: { MaxConnections: 2 } },
    alone: 'connections to upstreams are a gateway’s own',
  })
  const { token } = await gateway.agent()
  const origins = [await startOrigin(t), await startOrigin(t), await startOrigin(t), await startOrigin(t)]
  for (const { url } of origins) t.equal((await gateway.proxy(token, `${url}/`)).status, 200)
  const open = () => origins.reduce((sum, { sockets }) => sum + sockets.size, 0)
  await until(() => open() <= 2)
  t.equal(origins[3]?.sockets.size, 1)
})
