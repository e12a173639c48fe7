import type { Test } from 'tap'
import { openPostgresStore } from '../../../src/storage/postgres/open.ts'
import { turnQuery } from '../../../src/storage/postgres/turn.ts'
import { planOnce } from '../../../src/storage/postgres/turns.ts'
import { createSchema, type Server } from '../../fixtures/postgres.ts'

export function turnPlan(t: Test, server?: Server): void {
  t.test('the plan of a turn reads no table whole that grows, though it was short when the plan was made', async t => {
    const settings = await createSchema(t, server)
    const { admin } = settings
    await (await openPostgresStore({ settings })).close()
    await admin.query(`insert into changes (seq, at, "table", key, write)
      select n, 1, 'agents', 'a', gen_random_uuid() from generate_series(1001, 1060) n`)
    await admin.query(`insert into audit
      select n, 1, 'a', 'b', 'c', null, '{}', n - 1, n from generate_series(1001, 1060) n`)
    for (const table of ['changes', 'audit']) await admin.query(`analyze ${table}`)
    await admin.query(planOnce)
    await admin.query(`prepare turn as ${turnQuery}`)
    const nobody = '00000000-0000-4000-8000-000000000000'
    const { rows } = await admin.query(
      `explain execute turn('${nobody}', 1, 0, 1060, null, 1060, '1060', '${nobody}', 1)`,
    )
    const plan = rows.map(row => row['QUERY PLAN']).join('\n')
    t.match(plan, /Index .*Scan .*on changes/)
    t.notMatch(plan, /Seq Scan on (changes|audit)/)
    t.notMatch(plan, /JIT/)
  })
}
