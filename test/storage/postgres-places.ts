/** Threat T31 of SECURITY.md: what agents ask of the database leaves room for what people ask. */

import t from 'tap'
import { openPostgresStore } from '../../src/storage/postgres/open.ts'
import { createSchema } from '../fixtures/postgres.ts'
import { suspend } from './contract/samples.ts'

t.test('calls of agents that wait for items do not fill the line in which people wait', async t => {
  const { admin, ...settings } = await createSchema(t)
  const store = await openPostgresStore({ settings: { ...settings, poolSize: 2 } })
  t.teardown(() => store.close())
  await suspend(store, 'h1')
  await admin.query('begin')
  await admin.query('lock table hitl in access exclusive mode')
  const [briefs, items] = (['brief', 'get'] as const).map(method =>
    Array.from({ length: 150 }, () => store.hitl[method]('h1', 1_500, 'agents')),
  )
  const asked = Promise.allSettled([...briefs!, ...items!])
  const people = [store.hitl.brief('h1', 1_500), store.hitl.get('h1', 1_500)]
  await admin.query('commit')
  t.match(await Promise.all(people), [{ id: 'h1' }, { id: 'h1' }])
  const refused = (await asked).filter(({ status }) => status === 'rejected')
  t.match(refused[0], { reason: { message: 'Too many calls wait for the storage' } })
  t.ok(refused.length > 90 && refused.length < 110, `${refused.length} of 300 were refused`)
})
