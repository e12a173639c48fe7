import type { Test } from 'tap'
import { openPostgresStore } from '../../../src/storage/postgres/open.ts'
import { eventually } from '../../fixtures/gateway.ts'
import { createSchema, type Server } from '../../fixtures/postgres.ts'
import { runs } from '../../fixtures/runs.ts'

const past = runs(1_000_000, 50_000)
/** From the sixth on PostgreSQL may take a plan for any values. */
const looks = 20
/** Rows that one look may read. */
const most = 20

const read = `select coalesce(sum(seq_tup_read + coalesce(idx_tup_fetch, 0)), 0)::int as rows,
  coalesce(sum(seq_scan + coalesce(idx_scan, 0)), 0)::int as scans from pg_stat_user_tables
  where relname in ('hitl', 'granted_keys', 'deliveries') and schemaname = current_schema()`

export function duePlan(t: Test, server?: Server): void {
  t.test('a look for what is due reads a few rows, however many requests are past', async t => {
    const settings = await createSchema(t, server)
    const { admin } = settings
    await (await openPostgresStore({ settings })).close()
    await admin.query(`insert into hitl (id, "agentId", "ownerId", method, host, reason, "approvalsNeeded", digest, "createdAt",
        "expiresAt", status, replay, attempt, "approvedBy", "decidedBy", "decidedAt", "bodyBytes", "bodyEncoding", url, decision,
        summary)
      select n, 'a', 'o', 'GET', 'h', 'r', 1, 'd', n, n + 1000, case when n % 3 = 0 then 'Denied' else 'Approved' end,
        case when n % 3 = 0 then null else 'completed' end, 1, '[]', 'p', 1000000 + n, 0, 'utf8', 'u', '{}', '{}'
      from generate_series(1, ${past}) n`)
    await admin.query('analyze hitl')
    const seen = async () => (await admin.query(read)).rows[0] as { rows: number; scans: number }
    const before = await seen()
    const store = await openPostgresStore({ settings })
    const at = { now: 900_000, decided: 900_000, delivered: 900_000, most: 1_000 }
    for (let look = 0; look < looks; look++) {
      const due = await store.hitl.due(at)
      t.strictSame(due, { lapse: false, expire: false, prune: false, grants: false, deliveries: false })
    }
    t.match(await store.hitl.due({ ...at, decided: 2_000_000 }), { prune: true })
    // The server counts what a connection read when that ends.
    await store.close()
    const after = await eventually(seen, ({ scans }) => scans >= before.scans + looks)
    const rows = after.rows - before.rows
    t.ok(rows <= looks * most, `${rows} rows in ${looks} looks`)
  })
}
