/** What gateways read of each other's changes goes after an hour, but for the newest events. Threat T23. */
import t from 'tap'
import { openPostgresStore } from '../../src/storage/postgres/open.ts'
import { prunes } from '../../src/storage/postgres/turn.ts'
import { createSchema } from '../fixtures/postgres.ts'

t.test('of changes that are older than an hour the newest 1,000 events are left, and of commits none', async t => {
  const settings = await createSchema(t)
  const store = await openPostgresStore({ settings })
  await store.close()
  const { admin } = settings
  const hourAgo = `clock_ms() - 3600001`
  await admin.query(`insert into changes select n, ${hourAgo}, case when n % 2 = 0 then 'events' else 'agents' end, 'k', '{}',
    gen_random_uuid() from generate_series(1001, 5000) n`)
  await admin.query(`insert into changes values (5001, clock_ms(), 'events', 'k', '{}', gen_random_uuid())`)
  await admin.query(`insert into writes select gen_random_uuid(), ${hourAgo}, 'done' from generate_series(1, 50)`)
  await admin.query(`insert into members (id, beat, applied, name, version, started, "fenceMs", signs, accepts, digests, addresses)
    values (gen_random_uuid(), 0, 5001, 'a', '1', 0, 1000, '{}', '{}', '{}', '{}')`)
  for (const prune of prunes) await admin.query(prune)
  const { rows } = await admin.query(
    `select "table", count(*)::int as n from changes where seq > 1000 group by 1 order by 1`,
  )
  t.strictSame(rows, [{ table: 'events', n: 1_000 }])
  const { rows: writes } = await admin.query(`select count(*)::int as n from writes where at < clock_ms() - 3600000`)
  t.strictSame(writes, [{ n: 0 }])
})
