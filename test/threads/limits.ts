/** Threat T29 of SECURITY.md. */

import t from 'tap'
import { startGateway } from '../fixtures/gateway.ts'
import { enough, openKept } from '../fixtures/kept.ts'
import { startOrigin } from '../fixtures/origin.ts'

const burst = 100

t.test('over two threads exactly as many requests pass as the limit says', async t => {
  const origin = await startOrigin(t)
  const gateway = await startGateway(t, {
    config: { System: { Server: { Threads: 2 }, RateLimit: { RequestsPerMinute: 1, Burst: burst } } },
  })
  const { token } = await gateway.agent()
  const headers = { 'Gateway-Authorization': `Bearer ${token}` }
  const clients = openKept(t, gateway.port)
  const answers = await Promise.all(
    clients.map(async client => {
      const statuses: number[] = []
      for (let i = 0; i < 6; i++) statuses.push((await client.call(`/proxy/${origin.url}/`, { headers })).status)
      return statuses
    }),
  )
  const count = (status: number) => answers.flat().filter(one => one === status).length
  t.equal(count(200), burst)
  t.equal(count(429), enough * 6 - burst)
  t.equal(origin.seen.length, burst)
  const lines = await gateway.exchanges(enough * 6)
  const threads = new Set(lines.map(({ requestId }) => requestId?.split('-')[0]))
  t.ok(threads.size >= 2, 'both threads took part')
})

t.test('a circuit that opens is open in every thread, and one address has so many connections in all', async t => {
  const gateway = await startGateway(t, {
    config: {
      System: {
        Server: { Threads: 2, MaxConnectionsPerAddress: enough },
        CircuitBreaker: { Failures: 3 },
      },
    },
  })
  const { token } = await gateway.agent()
  const headers = { 'Gateway-Authorization': `Bearer ${token}` }
  const clients = openKept(t, gateway.port, enough - 4)
  const answers = []
  // Nobody listens on the discard port.
  for (const client of clients) answers.push((await client.call('/proxy/http://127.0.0.1:9/', { headers })).status)
  t.strictSame(answers, [502, 502, 502, ...Array(enough - 7).fill(503)])
  const more = openKept(t, gateway.port, enough)
  const taken = await Promise.allSettled(more.map(client => client.call('/health')))
  const refused = taken.filter(({ status }) => status === 'rejected').length
  t.ok(refused >= enough - 4 && refused < enough, `${refused} of ${enough} found no room`)
})
