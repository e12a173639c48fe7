/** Settings of connections behind a pooler in transaction mode, which drops those of a session. */
import { randomBytes } from 'node:crypto'
import t from 'tap'
import { openPostgresStore } from '../../src/storage/postgres/open.ts'
import { createSchema } from '../fixtures/postgres.ts'
import { startTcpProxy } from '../fixtures/tcp-proxy.ts'
import { actions, agent, entry } from './contract/samples.ts'

t.test(
  'a pooled connection sends no settings and prepares nothing, and the start says what the role must have',
  async t => {
    const own = await createSchema(t)
    const role = `pooled_${randomBytes(4).toString('hex')}`
    await own.admin.query(`create role ${role} login superuser password 'pooled'`)
    t.teardown(async () => {
      await own.admin.query(`drop owned by ${role} cascade; drop role ${role}`)
    })
    const url = new URL(own.connectionString)
    ;[url.username, url.password] = [role, 'pooled']
    const listenConnectionString = url.href
    const proxy = await startTcpProxy(t, Number(url.port))
    const sent: Buffer[] = []
    proxy.onSend = data => sent.push(data) > 0
    url.port = String(proxy.port)
    const settings = { ...own, connectionString: url.href, listenConnectionString }
    const refused = await openPostgresStore({ settings }).then(
      () => '',
      ({ name, message }: Error) => `${name}: ${message}`,
    )
    t.match(refused, /StartupError: .*settings of the role/)
    const statements = refused.match(/alter role [^;]+;/g) ?? []
    t.equal(statements.length, 5, refused)
    await own.admin.query(statements.join(''))

    const store = await openPostgresStore({ settings })
    t.teardown(() => store.close())
    for (const id of ['a1', 'a2', 'a3']) await store.agents.insert(agent(id), 'h', entry(id))
    t.strictSame(await actions(store), ['a1', 'a2', 'a3'])
    const all = Buffer.concat(sent).toString('latin1')
    t.notMatch(all, /search_path=|lock_timeout=/, 'no settings at the start of a connection')
    t.notMatch(all, /P\0\0..[0-9a-f]{32}\0/s, 'no statement has a name')
    const { rows } = await own.admin.query<{ limit: string }>(
      `select array_to_string(rolconfig, ' ') as limit from pg_roles where rolname = $1
    union all select array_to_string(setconfig, ' ') from pg_db_role_setting s join pg_roles r on r.oid = s.setrole where rolname = $1`,
      [role],
    )
    t.match(rows.map(({ limit }) => limit).join(' '), new RegExp(`lock_timeout=${(own.timeoutSeconds ?? 0) * 600}`))
  },
)
