/** An upstream that closes idle connections as the next request is sent is healthy: its circuit stays closed. */

import t from 'tap'
import { engine } from '../fixtures/engine.ts'
import { startGateway } from '../fixtures/gateway.ts'
import { startRawServer } from '../fixtures/raw.ts'

for (const how of ['end', 'reset'] as const) {
  t.test(`a kept connection that the upstream closes (${how}) before a byte of an answer opens no circuit`, async t => {
    // Each connection answers its first request, and meets the second with its close.
    const server = await startRawServer(t, socket => {
      socket.once('data', () => {
        socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')
        socket.once('data', () => (how === 'end' ? socket.end() : socket.resetAndDestroy()))
      })
    })
    const config = {
      System: { Server: { Threads: 1 }, CircuitBreaker: { Failures: 2 } },
      Proxy: { Client: engine, RetryIdempotent: false },
    }
    const gateway = await startGateway(t, { config, alone: 'connections to upstreams are a gateway’s own' })
    const { token } = await gateway.agent()
    const statuses = []
    for (let i = 0; i < 12; i++) statuses.push((await gateway.proxy(token, `${server.url}/`)).status)
    t.strictSame(
      statuses,
      Array.from({ length: 12 }, (_, i) => (i % 2 === 0 ? 200 : 502)),
    )
  })
}

t.test('a new connection that the upstream closes before a byte of an answer counts', async t => {
  const server = await startRawServer(t, socket => void socket.once('data', () => socket.end()))
  const gateway = await startGateway(t, {
    config: { System: { CircuitBreaker: { Failures: 2 } } },
    alone: 'a circuit is a gateway’s own',
  })
  const { token } = await gateway.agent()
  const statuses = []
  for (let i = 0; i < 3; i++) statuses.push((await gateway.proxy(token, `${server.url}/`)).status)
  t.strictSame(statuses, [502, 502, 503])
})
