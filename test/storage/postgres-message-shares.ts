/** Gateways of before the shares of messages, beside those that have them. */

import t from 'tap'
import { openPostgresStore } from '../../src/storage/postgres/open.ts'
import { createSchema } from '../fixtures/postgres.ts'
import { suspend } from './contract/samples.ts'

t.test(
  'a message of a gateway that names no agent counts for the agent of its request, or the one it is about',
  async t => {
    const settings = await createSchema(t)
    const store = await openPostgresStore({ settings, subscriptions: [{ hook: 'h', types: ['pending'] }] })
    t.teardown(() => store.close())
    await suspend(store, 'h1', { agentId: 'a1' })
    const known = await settings.admin.query(
      `select json_build_object('epoch', epoch, 'seq', 0, 'hash', '') as known from fleet`,
    )
    const note = (key: string) => ({ table: 'events', key, now: '{"data":{"title":"\\u0000"}}', at: 1, hooks: ['h'] })
    await settings.admin.query(`select * from commit_write(gen_random_uuid(), 1, '[]', '[]', '[]', $1, $2)`, [
      JSON.stringify([note('h1'), note('a2')]),
      JSON.stringify(known.rows[0].known),
    ])
    const { rows } = await settings.admin.query(`select "agentId" from deliveries order by id`)
    t.strictSame(
      rows.map(({ agentId }) => agentId),
      ['a1', 'a1', 'a2'],
    )
  },
)
