/** The clock of the database jumps under gateways that run: held requests neither lapse early nor come back. */

import t, { type Test } from 'tap'
import { FleetClock } from '../../src/fleet/clock.ts'
import { openPostgresStore } from '../../src/storage/postgres/open.ts'
import { eventually } from '../fixtures/gateway.ts'
import { createSchema } from '../fixtures/postgres.ts'

async function open(t: Test, settings: Awaited<ReturnType<typeof createSchema>>) {
  const clock = new FleetClock()
  const store = await openPostgresStore({ settings, clock })
  t.teardown(() => store.close())
  for (const feed of [store.feed.agents, store.feed.policies]) {
    await feed.follow({ load: () => undefined, change: () => undefined })
  }
  await store.untilOpen()
  return clock
}

t.test(
  'gateways keep their time when the clock of the database jumps, and one that starts then has it too',
  async t => {
    const settings = await createSchema(t)
    const clocks = [await open(t, settings), await open(t, settings)]
    const jump = (ms: number) =>
      settings.admin.query(`create or replace function clock_ms() returns bigint language sql as
      'select floor(extract(epoch from clock_timestamp()) * 1000)::bigint + ${ms}'`)
    for (const hours of [1, -1]) {
      await jump(hours * 3_600_000)
      await eventually(
        () => clocks.map(({ ahead }) => Math.round(ahead / 60_000)),
        ahead => ahead.every(minutes => minutes === -60 * hours),
      )
      clocks.push(await open(t, settings))
      for (const clock of clocks) t.ok(Math.abs(clock.now() - Date.now()) < 10_000, 'all have the time of before')
    }
  },
)
