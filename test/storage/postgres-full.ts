/** A server that cannot write files any longer: as on a full disk, nothing is half done, and it recovers by itself. */

import t from 'tap'
import { verifyTrail } from '../../src/audit/trail.ts'
import { openPostgresStore } from '../../src/storage/postgres/open.ts'
import { eventually } from '../fixtures/gateway.ts'
import { createSchema, startPostgres } from '../fixtures/postgres.ts'
import { limitFiles } from '../fixtures/postgres-faults.ts'
import { entry, pending, roomy, suspend, trail } from './contract/samples.ts'

const server = await startPostgres({ hasSmallFiles: true })
t.teardown(() => server.stop())

t.test('writes that find no room change nothing, and later ones are kept', async t => {
  const { admin, ...settings } = await createSchema(t, server)
  limitFiles(2 ** 20, [server.pid])
  const store = await openPostgresStore({ settings })
  t.teardown(() => store.close())
  // Nothing that can be compressed.
  const large = crypto.getRandomValues(new Uint8Array(65_536))
  const sealed = Buffer.concat(Array.from({ length: 2 }, () => crypto.getRandomValues(large).slice()))
  const insert = (n: number) =>
    store.hitl.insert(pending(`h${n}`), sealed, roomy, entry('hitl.suspend', { subject: `h${n}` }))
  const results: PromiseSettledResult<unknown>[] = []
  for (let n = 0; n < 12; n++) results.push(...(await Promise.allSettled([insert(n)])))
  const failed = results.filter(({ status }) => status === 'rejected')
  t.ok(failed.length > 0 && failed.length < 12, `${failed.length} of 12 failed`)
  t.match(failed[0], { reason: { name: 'StoreError', inDoubt: false, message: /could not (extend|write)/ } })
  t.equal(await store.hitl.countPending(1_500), 12 - failed.length)
  t.equal((await trail(store)).length, 12 - failed.length)
  await t.rejects(store.ping(), { name: 'StoreError', message: /no space.*could not write/ })

  const { rows } = await admin.query('select pid from pg_stat_activity where pid <> pg_backend_pid()')
  limitFiles('unlimited', [server.pid, ...rows.map(({ pid }) => pid)])
  t.equal(await eventually(() => suspend(store, 'after').catch(() => undefined), Boolean), 'stored')
  t.equal(await insert(99), 'stored')
  await store.ping()
  t.match(await verifyTrail(store.audit), { ok: true })
})
