/** Each agent that waited for its verdict kept the body of its request in memory, twice: up to 2.3 MiB for 55 seconds. */

import t from 'tap'
import { allowAll, eventually, startGateway } from '../fixtures/gateway.ts'
import { openKept } from '../fixtures/kept.ts'
import { megabytesInUse } from '../fixtures/memory.ts'
import { startOrigin } from '../fixtures/origin.ts'

t.test('bodies of held requests are in the store alone while their agents wait', async t => {
  const origin = await startOrigin(t)
  const gateway = await startGateway(t, {
    config: {
      System: {
        Server: { Threads: 1 },
        ManagementRateLimit: { RequestsPerMinute: 1_000_000, Burst: 1_000_000 },
      },
      Proxy: { MaxHeldBytes: 400_000_000 },
      HumanInTheLoop: { MaxPendingPercentPerAgent: 100 },
      Policies: [allowAll, { name: 'ask', default: 'Hitl' }],
    },
  })
  const { token } = await gateway.agent({ policyName: 'ask' })
  const headers = { 'Gateway-Authorization': `Bearer ${token}`, Prefer: 'wait=30' }
  const body = Buffer.alloc(1_000_000, 'x')
  const clients = openKept(t, gateway.port, 30)
  const before = megabytesInUse()
  const held = async () => JSON.parse((await gateway.manage('GET', '/hitl')).text).length as number
  const calls: Promise<unknown>[] = []
  // One after the other: the store gives up what it cannot write in time, and a megabyte is much for a slow disk.
  for (const client of clients) {
    // Each another request: the same one would join the first.
    const path = `/proxy/${origin.url}/${calls.length}`
    calls.push(client.call(path, { method: 'POST', headers, body }))
    t.equal(await eventually(held, count => count === calls.length), calls.length)
  }
  const broken = Promise.allSettled(calls)
  const grown = await eventually(
    () => megabytesInUse() - before,
    megabytes => megabytes < 12,
  )
  t.ok(grown < 12, `${grown.toFixed()} MB for ${clients.length} bodies of 1 MB`)
  for (const client of clients) client.close()
  await broken
})
