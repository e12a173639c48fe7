/** What a start says about a database that it cannot use: one line, what to change, never a secret, nothing created. */

import t from 'tap'
import { StartupError } from '../../src/base/refusals.ts'
import { serverProblem } from '../../src/storage/postgres/migrate.ts'
import { openPostgresStore } from '../../src/storage/postgres/open.ts'
import type { PostgresSettings } from '../../src/storage/postgres/settings.ts'
import { startMs } from '../../src/storage/postgres/start-deadline.ts'
import { createSchema } from '../fixtures/postgres.ts'

const { admin, ...settings } = await createSchema(t)
const { password } = new URL(settings.connectionString)
function urlWith(parts: Partial<Pick<URL, 'username' | 'password' | 'port' | 'pathname' | 'search'>>): string {
  return Object.assign(new URL(settings.connectionString), parts).href
}

const cases: readonly [string, Partial<PostgresSettings>, RegExp][] = [
  ['no URL', { connectionString: 'host=db password=hunter22hunter22' }, /ConnectionString: must be postgres:\/\//],
  ['another scheme', { connectionString: 'mysql://u:hunter22hunter22@h/d' }, /ConnectionString: must be postgres:\/\//],
  ['no database', { connectionString: urlWith({ pathname: '' }) }, /must name a user, a host and a database/],
  ['a lone %', { connectionString: 'postgres://u:hunter22%hunter22@127.0.0.1/d' }, /write %25 for %/],
  ['a / in the password', { connectionString: 'postgres://u:hunter22/h@127.0.0.1/d' }, /write %2F for \//],
  ['parameters', { connectionString: urlWith({ search: 'sslmode=disable' }) }, /must have no parameters/],
  ['no TLS to another machine', { connectionString: 'postgres://u:hunter22@db.example/d' }, /Tls: must be VerifyFull/],
  ['a missing CA', { tls: 'VerifyFull', caFile: '/nowhere/ca.pem' }, /CaFile: \/nowhere\/ca.pem cannot be read/],
  ['a wrong password', { connectionString: urlWith({ password: 'hunter22' }) }, /the user or the password is wrong/],
  ['an unknown database', { connectionString: urlWith({ pathname: '/nowhere' }) }, /has no such database/],
  ['nothing there', { connectionString: urlWith({ port: '1' }) }, /nothing listens there/],
  ['an unknown host', { connectionString: 'postgres://u:p@nowhere.invalid/d', tls: 'VerifyFull' }, /cannot be reached/],
  ['no socket', { connectionString: 'postgres://u:p@%2Fnowhere/d' }, /no such socket/],
  ['TLS where there is none', { tls: 'VerifyFull' }, /has no TLS/],
]
for (const [name, change, message] of cases) {
  t.test(`refused: ${name}`, async t => {
    const begun = performance.now()
    const error = await openPostgresStore({ settings: { ...settings, ...change } }).then(
      () => undefined,
      error => error,
    )
    t.ok(error instanceof StartupError, String(error))
    t.ok(performance.now() - begun < startMs, 'at once')
    t.match(error.message, message)
    t.notMatch(error.message, /hunter22|\n/)
    t.notOk(error.message.includes(password))
  })
}

t.test('a user without rights learns which it needs, and nothing is created', async t => {
  const user = `${settings.schema}_user`
  await admin.query(`create role ${user} login password 'hunter22'`)
  t.teardown(() => admin.query(`drop role ${user}`))
  const connectionString = urlWith({ username: user, password: 'hunter22' })
  await t.rejects(openPostgresStore({ settings: { ...settings, connectionString } }), {
    name: 'StartupError',
    message: new RegExp(`grant create on database "\\w+" to "${user}".*AGENT_GATEWAY_STORAGE_OWNER`),
  })
  t.equal((await admin.query(`select from pg_namespace where nspname = $1`, [settings.schema])).rowCount, 0)
})

t.test('a schema that needs another version is refused', async t => {
  const store = await openPostgresStore({ settings })
  await store.close()
  await admin.query(`update fleet set needs = '99.0.0'`)
  await t.rejects(openPostgresStore({ settings }), { name: 'StartupError', message: /needs version 99\.0\.0/ })
  await admin.query(`update fleet set needs = '0.0.0'`)
})

t.test('a server that would lose what it confirms is refused', async t => {
  const good = { version: 18, encoding: 'UTF8', fsync: 'on', pages: 'on', commit: 'on', recovering: false }
  t.equal(serverProblem(good), undefined)
  t.equal(serverProblem({ ...good, commit: 'remote_apply' }), undefined)
  t.match(serverProblem({ ...good, version: 14 }), /PostgreSQL 14 is too old/)
  t.match(serverProblem({ ...good, encoding: 'SQL_ASCII' }), /encoding/)
  t.match(serverProblem({ ...good, fsync: 'off' }), /fsync = on/)
  t.match(serverProblem({ ...good, pages: 'off' }), /full_page_writes = on/)
  for (const commit of ['off', 'local']) t.match(serverProblem({ ...good, commit }), /synchronous_commit = on/)
  t.match(serverProblem({ ...good, recovering: true }), /standby/)
  const role = `${settings.schema}_careless`
  await admin.query(`create role ${role} login password 'hunter22'`)
  t.teardown(() => admin.query(`drop role ${role}`))
  await admin.query(`alter role ${role} set synchronous_commit = off`)
  const connectionString = urlWith({ username: role, password: 'hunter22' })
  await t.rejects(openPostgresStore({ settings: { ...settings, connectionString } }), {
    name: 'StartupError',
    message: /synchronous_commit is off/,
  })
})
