/** A gateway whose role does not own the schema. */
import { randomBytes } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import t from 'tap'
import { runCommand } from '../../src/cli/commands.ts'
import { eventually, onDatabase } from '../fixtures/gateway.ts'
import { startOrigin } from '../fixtures/origin.ts'
import { createSchema } from '../fixtures/postgres.ts'
import { startReview } from '../fixtures/review.ts'
import { fakeShell } from '../fixtures/shell.ts'
import { testdir } from '../fixtures/testdir.ts'

t.test('a gateway works with a role that can neither change the trail nor create anything', async t => {
  const settings = await createSchema(t)
  const role = `runs_${randomBytes(4).toString('hex')}`
  await settings.admin.query(`create role ${role} login password 'runs'`)
  t.teardown(async () => {
    await settings.admin.query(`drop owned by ${role}; drop role ${role}`)
  })
  const url = new URL(settings.connectionString)
  ;[url.username, url.password] = [role, 'runs']
  const config = onDatabase({ ...settings, connectionString: url.href })
  const file = join(testdir(t), 'gateway.yaml')
  writeFileSync(file, JSON.stringify(config), { mode: 0o600 })
  const migrate = async (env: Readonly<Record<string, string>>) => {
    const shell = fakeShell(['storage', 'migrate', '--config', file], env)
    return { code: await runCommand(shell), said: [...shell.printed, ...shell.complained].join('\n') }
  }
  t.match(await migrate({}), { code: 1, said: /may not create/ }, 'the role itself cannot')
  const owner = { AGENT_GATEWAY_STORAGE_OWNER: settings.connectionString }
  t.match(await migrate(owner), { code: 0, said: /0001-schema.*\nthe role runs_.* can run gateways/ })
  t.match(await migrate(owner), { code: 0, said: /up to date/ })
  const doctor = async () => {
    const shell = fakeShell(['doctor', '--config', file])
    return { code: await runCommand(shell), said: shell.printed.join('\n') }
  }
  t.match(await doctor(), { code: 0, said: /its clock is \d+ ms .*\n.*its user has the rights/ })
  await settings.admin.query(`revoke insert on ${settings.schema}.agents from ${role}`)
  t.match(await doctor(), { code: 1, said: /fail +database +its user may not insert agents\n.*storage migrate/ })
  t.match(await migrate(owner), { code: 0 })

  const origin = await startOrigin(t)
  const review = await startReview(t, { config, origin })
  const [sent, denied] = [await review.hold('/sent'), await review.hold('/denied')]
  t.equal((await review.approve(sent, { grant: { minutes: 60, maxUses: 10 } })).status, 200)
  t.equal((await review.deny(denied)).status, 200)
  const replay = async () => JSON.parse((await review.manage('GET', `/hitl/${sent}`)).text).pending.replay
  t.equal(await eventually(replay, now => now === 'completed'), 'completed')
  t.equal((await review.manage('POST', `/agents/${review.bot.id}/revoke`)).status, 200)
  t.equal((await review.manage('GET', '/audit')).status, 200)

  const client = new pg.Client(url.href)
  await client.connect()
  t.teardown(() => client.end())
  await client.query(`set search_path = ${settings.schema}`)
  for (const statement of [
    `update audit set actor = 'nobody'`,
    'delete from audit',
    'truncate audit',
    `insert into audit select seq + 1000, at, actor, action, subject, "requestId", details, previous, hash from audit`,
    'drop table audit',
    'alter table audit disable trigger all',
    'create table mine (id text)',
    `create or replace function clock_ms() returns bigint language sql as 'select 1::bigint'`,
    'create temporary table audit (seq bigint); select * from commit_write(null, 1, null, null, null, null, null)',
    `delete from kysely_migration`,
  ]) {
    await t.rejects(client.query(statement), { name: 'error' }, statement)
  }
  const shell = fakeShell(['audit', 'verify', '--config', file], {})
  t.equal(await runCommand(shell), 0, shell.complained.join())
})
