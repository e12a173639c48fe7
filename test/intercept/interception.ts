import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, createServer as createTcpServer } from 'node:net'
import t from 'tap'
import { createOrigin } from '../../src/base/origin.ts'
import { followConnections } from '../../src/http/follow-connections.ts'
import { ConnectTunnel } from '../../src/http/own-urls.ts'
import { createInterception } from '../../src/intercept/interception.ts'
import { createOpenedHosts } from '../../src/intercept/opened-hosts.ts'
import { systemClock } from '../../src/runtime/clock.ts'
import { testConfig } from '../fixtures/gateway.ts'
import { openRaw } from '../fixtures/raw.ts'

t.test('T32 a tunnel in the clear on which nothing moves is closed', async t => {
  const inner = createServer(() => {})
  followConnections(inner, 200)
  t.teardown(() => inner.emit('close'))
  const interception = createInterception({
    leafs: { permits: () => true, contextFor: () => Promise.reject(new Error('no leafs here')) },
    hosts: createOpenedHosts({ ...testConfig().ForwardProxy, Http2Hosts: [] }),
    clock: systemClock,
    limits: { maxStreams: 1, firstMs: 60_000, idleMs: 60_000, stalledMs: 60_000 },
    onHandshake: () => {},
    onFailed: () => {},
    onResets: () => {},
  })
  interception.serve(connection => inner.emit('connection', connection))
  const front = createTcpServer(socket => {
    const origin = createOrigin('https', 'example.com', 80)
    interception.open(socket, new ConnectTunnel({ id: 'one', agentId: 'bot', token: 'token', clientIp: '', origin }))
  })
  await once(front.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => front.close())
  const client = await openRaw(t, (front.address() as AddressInfo).port)
  const request = once(inner, 'request')
  client.write('GET / HTTP/1.1\r\nHost: example.com\r\n\r\n')
  await request
  t.match(await client.closed(), /^HTTP\/1\.1 200 Connection established\r\n\r\n$/, 'the request is never answered')
})
