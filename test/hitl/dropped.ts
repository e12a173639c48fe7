/** Messages that no webhook takes are dropped in the end, and the operator is told of how many. Threat T23. */

import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import t from 'tap'
import { queuesOf, subscriptionsOf } from '../../src/hitl/receiver.ts'
import { createClock } from '../fixtures/clock.ts'
import { openDesk } from '../fixtures/hitl.ts'
import { hookOf, receiversOf } from '../fixtures/hooks.ts'
import { openSqliteStore } from '../fixtures/sqlite.ts'
import { testdir } from '../fixtures/testdir.ts'
import { suspend } from '../storage/contract/samples.ts'

const [other, down, foreign] = ['other', 'down', 'foreign'].map(name => hookOf({ Url: `https://${name}.example/key` }))
/** Its queue in the store. */
const downName = queuesOf(receiversOf(down!))[0]!.name

t.test('messages that were not taken for a day are dropped and reported, by the place of their webhook', async t => {
  const clock = createClock()
  const subscriptions = subscriptionsOf(receiversOf(down!, foreign!))
  const store = await openSqliteStore({ directory: testdir(t), clock, subscriptions })
  t.teardown(() => store.close())
  const day = 86_400_000
  const at = clock.now()
  for (const id of ['h1', 'h2']) await suspend(store, id, { createdAt: at, expiresAt: at + 3 * day })
  await suspend(store, 'h3', { createdAt: at + day, expiresAt: at + 3 * day })
  const desk = await openDesk({ directory: '', store, clock, settings: { Webhooks: [other!, down!] } })
  clock.advance(day)
  await desk.queue.sweep()
  t.strictSame(desk.reports, [])
  clock.advance(1)
  await desk.queue.sweep()
  t.strictSame(desk.reports.sort(), [
    'a receiver that this gateway does not have did not take its messages in time: 2 were dropped',
    'webhook 1 did not take its messages in time: 2 were dropped',
  ])
  t.notOk(desk.reports.join().includes('/key'), 'the address may be a secret')
  t.match(await store.deliveries.next(downName, 9), [{ note: { hitlId: 'h3' } }])
})

t.test('an agent that leaves more messages than a webhook has room for pushes out none of another agent', async t => {
  const clock = createClock()
  const directory = testdir(t)
  const store = await openSqliteStore({ directory, clock, subscriptions: subscriptionsOf(receiversOf(down!)) })
  t.teardown(() => store.close())
  const at = clock.now()
  const hold = (id: string, agentId: string) =>
    suspend(store, id, { agentId, createdAt: at, expiresAt: at + 9_000_000 })
  for (const id of ['first', 'second']) await hold(id, 'quiet')
  const file = new DatabaseSync(join(directory, 'gateway.db'))
  t.teardown(() => file.close())
  file.exec(`insert into deliveries (hook, "agentId", event, at, payload)
    with recursive r (n) as (select 1 union all select n + 1 from r where n < 11200)
    select '${downName}', 'flood', 'event ' || n, ${at}, '{"type":"pending"}' from r`)
  await hold('third', 'quiet')
  const desk = await openDesk({ directory: '', store, clock, settings: { Webhooks: [other!, down!] } })
  const waiting = () =>
    file
      .prepare(`select "agentId" as of, count(*) as count from deliveries group by "agentId" order by "agentId"`)
      .all()
  // Two rounds: one drops a thousand, so that it is short.
  for (let sweeps = 0; sweeps < 3; sweeps++) await desk.queue.sweep()
  t.match(waiting(), [
    { of: 'flood', count: 9_997 },
    { of: 'quiet', count: 3 },
  ])
  t.strictSame(desk.reports, [
    ...['webhook 1 did not take its messages in time: 1000 were dropped', 'webhook_messages flood'],
    ...['webhook 1 did not take its messages in time: 203 were dropped', 'webhook_messages flood'],
  ])
})
