/** A first turn that took too long ended the start with the trace of an error instead of one line. */

import t from 'tap'
import { systemClock } from '../../src/runtime/clock.ts'
import { openPostgresStore } from '../../src/storage/postgres/open.ts'
import { createSchema } from '../fixtures/postgres.ts'
import { startTcpProxy } from '../fixtures/tcp-proxy.ts'

t.test('a start that cannot watch for changes is refused with one line', async t => {
  const settings = await createSchema(t)
  const url = new URL(settings.connectionString)
  const line = await startTcpProxy(t, Number(url.port))
  url.port = String(line.port)
  line.onSend = data => !data.includes('listen "agent_gateway')
  // The start tries for 15 s of this clock.
  const fenceClock = { ...systemClock, steady: () => systemClock.steady() * 20 }
  const start = openPostgresStore({
    settings: { ...settings, connectionString: url.href },
    fenceMs: 2_000,
    fenceClock,
  })
  await t.rejects(start, {
    name: 'StartupError',
    message: 'The database failed during the start: A turn took too long',
  })
})
