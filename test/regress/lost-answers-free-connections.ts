/** What is given up must not keep its connection: an answer that was lost never comes, and one that is late is no news. */
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { openPostgresStore } from '../../src/storage/postgres/open.ts'
import { eventually } from '../fixtures/gateway.ts'
import { createSchema } from '../fixtures/postgres.ts'
import { impatient, openProxied } from '../fixtures/proxied-store.ts'
import { startTcpProxy } from '../fixtures/tcp-proxy.ts'
import { agent, entry } from '../storage/contract/samples.ts'

t.test('calls whose answers were lost give their connections back', async t => {
  const { proxy, store } = await openProxied(t, impatient)
  const readAll = () => Promise.allSettled(Array.from({ length: 8 }, () => store.agents.all()))
  await readAll()
  proxy.answers = false
  const results = await readAll()
  t.match(results[0], { status: 'rejected', reason: { name: 'StoreError' } })
  proxy.answers = true
  t.strictSame(await store.agents.all(), [])
})

t.test('a turn that was given up does nothing when its answer comes late', async t => {
  const settings = { ...(await createSchema(t)), timeoutSeconds: 2 }
  const url = new URL(settings.connectionString)
  const proxy = await startTcpProxy(t, Number(url.port))
  const lost: string[] = []
  const stale: unknown[] = []
  const onLoss = { accept: false, onLost: (what: string) => lost.push(what), onAccepted() {} }
  url.port = String(proxy.port)
  const gateway = await openPostgresStore({
    settings: { ...settings, connectionString: url.href },
    ...{ fenceMs: 4_000, onLoss, onStale: error => stale.push(error) },
  })
  t.teardown(() => gateway.close())
  await gateway.feed.agents.follow({ load: () => undefined, change: () => undefined })
  await gateway.feed.policies.follow({ load: () => undefined, change: () => undefined })
  const other = await openPostgresStore({ settings, fenceMs: 4_000 })
  t.teardown(() => other.close())
  await gateway.untilOpen()
  await other.agents.insert(agent('a1'), 'h', entry('agent.register'))
  await eventually(
    async () => gateway.fleet().applied,
    applied => applied === 1,
  )
  let held = 0
  proxy.onAnswer = data => !data.includes('othersAhead') || held++ > 0
  await eventually(
    async () => stale.length,
    count => count > 0,
  )
  await other.agents.insert(agent('a2'), 'h', entry('agent.register'))
  await eventually(
    async () => gateway.fleet().applied,
    applied => applied === 2,
  )
  proxy.onAnswer = () => true
  // Between two turns.
  await sleep(200)
  proxy.release()
  await other.agents.insert(agent('a3'), 'h', entry('agent.register'))
  await eventually(
    async () => gateway.fleet().applied,
    applied => applied === 3 || lost.length > 0,
  )
  t.strictSame(lost, [])
  t.ok(gateway.fence.isOpen)
})
