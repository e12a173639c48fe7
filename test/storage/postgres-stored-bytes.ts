/** Gateways of before the limit of stored bytes, beside those that have it. */

import t from 'tap'
import { openPostgresStore } from '../../src/storage/postgres/open.ts'
import { createSchema } from '../fixtures/postgres.ts'
import { deny, suspend } from './contract/samples.ts'

const settings = await createSchema(t)
const store = await openPostgresStore({ settings })
t.teardown(() => store.close())
const { admin } = settings
const counted = async () => {
  const { rows } = await admin.query(`select waiting, coalesce(bytes, 0) as bytes
    from hitl_waiting left join hitl_bytes using ("agentId") where "agentId" in ('', 'a1')`)
  return rows.map(({ waiting, bytes }) => ({ waiting, bytes: Number(bytes) }))
}
const both = (one: object) => [one, one]

t.test('a gateway that sends no bytes holds and counts requests as before', async t => {
  const known = await admin.query(`select json_build_object('epoch', epoch, 'seq', 0, 'hash', '') as known from fleet`)
  const write = (waiting: number, room: object) =>
    admin.query(`select * from commit_write(gen_random_uuid(), 1, '[]', $1, $2, '[]', $3)`, [
      JSON.stringify([{ agentId: 'a1', change: waiting }]),
      JSON.stringify([{ agentId: 'a1', now: 1, ...room }]),
      JSON.stringify(known.rows[0].known),
    ])
  await write(1, { maxPending: 1, maxPendingOfAgent: 1 })
  t.strictSame(await counted(), both({ waiting: 1, bytes: 0 }))
  await t.rejects(write(1, { maxPending: 1, maxPendingOfAgent: 1 }), { message: 'queueFull' })
  await write(-1, { maxPending: 1, maxPendingOfAgent: 1 })
  t.strictSame(await counted(), both({ waiting: 0, bytes: 0 }))
})

t.test('a row that it removes gives back its bytes, and one that it has written counts when it is decided', async t => {
  await suspend(store, 'h1', { body: 'x'.repeat(5_000) })
  const [one] = await counted()
  t.ok((one?.bytes ?? 0) > 5_000)
  await admin.query(`delete from hitl where id = 'h1'`)
  t.strictSame(await counted(), both({ waiting: 1, bytes: 0 }))
  await suspend(store, 'h2', { body: 'x'.repeat(5_000) })
  await admin.query(`update hitl set bytes = 0 where id = 'h2'`)
  t.strictSame(await counted(), both({ waiting: 2, bytes: 0 }))
  await deny(store, 'h2')
  const [denied] = await counted()
  t.ok((denied?.bytes ?? 0) > 5_000)
})
