/** The clock of the database jumps while gateways run: nothing lapses early, and nothing that is over comes back. */

import t from 'tap'
import { eventually, onDatabase } from '../fixtures/gateway.ts'
import { createSchema } from '../fixtures/postgres.ts'
import { startReview } from '../fixtures/review.ts'

t.test('held requests and tokens outlive a jump of the clock of the database, and the log has it', async t => {
  const settings = await createSchema(t)
  const review = await startReview(t, { config: onDatabase(settings) })
  const id = await review.hold('/kept')
  for (const hours of [1, -1]) {
    await settings.admin.query(`create or replace function clock_ms() returns bigint language sql as
      'select floor(extract(epoch from clock_timestamp()) * 1000)::bigint + ${hours * 3_600_000}'`)
    // Sweeps run about each second, turns each half: by then one has swept by the new time.
    const beats = new Set<string>()
    await eventually(
      async () => {
        const { rows } = await settings.admin.query<{ beat: string }>('select beat from members')
        return beats.add(rows[0]?.beat ?? '').size
      },
      size => size > 5,
    )
    t.match(JSON.parse((await review.manage('GET', `/hitl/${id}`)).text), { pending: { status: 'Pending' } })
    t.equal((await review.manage('GET', '/agents', undefined, review.adminToken)).status, 200)
  }
  t.match(
    review.log.filter(({ message }) => message.includes('3600 s ahead of the gateways')),
    [{ level: 'warn' }],
  )
})
