/** Commands on PostgreSQL, each in a process of its own: what they say, and how they end. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { eventually, onDatabase } from '../fixtures/gateway.ts'
import { createSchema, leaveMember } from '../fixtures/postgres.ts'
import { runMain } from '../fixtures/process.ts'
import { testdir } from '../fixtures/testdir.ts'

/** Runs commands with these settings. */
function commandsOn(t: Test, settings: object) {
  const cwd = testdir(t)
  const server = { System: { Server: { Http: { Port: 0 } } } }
  writeFileSync(join(cwd, 'gateway.yaml'), JSON.stringify({ ...server, ...settings }), { mode: 0o600 })
  return (...args: readonly string[]) => runMain(t, args, { cwd })
}

t.test('commands work on the database, or say what to use instead', async t => {
  const settings = await createSchema(t)
  // A command waits until a gateway that is silent can no longer serve.
  const run = commandsOn(t, { ...onDatabase(settings), Fleet: { FenceAfterSeconds: 8 } })
  const done = async (...args: readonly string[]) => {
    const { ended, out, err } = run(...args)
    return { code: await ended, said: out() + err() }
  }
  const gateway = run('serve')
  await gateway.shows(/agent-gateway is ready/)
  t.match(await done('audit', 'verify'), { code: 0, said: /^1 entries are as they were written/ })
  for (const name of ['backup', 'restore']) t.match(await done(name, 'copy'), { code: 1, said: /pg_dump/ })
  t.match(await done('check'), { code: 0 })
  const [, address = ''] = await gateway.shows(/Address +(http:\S+)/)
  const row = `[\\w.-]+ \\* +Serving +0 .* ${address} +-\n`
  t.match(await done('fleet', 'status', '--at', address), { code: 0, said: new RegExp(`^GATEWAY .*\n${row}$`) })
  const two = await done('fleet', 'status', '--members', '2', '--at', address)
  t.match(two, { code: 1, said: /1 of 2 gateways are missing/ })
  const asJson = await done('fleet', 'status', '--members', '2', '--json', '--at', address)
  const problems = ['1 of 2 gateways are missing']
  t.match([asJson.code, JSON.parse(asJson.said)], [1, { ok: false, members: [{ state: 'Serving', lag: 0 }], problems }])
  await leaveMember(settings.admin, 'dead')
  const silent = await eventually(
    () => done('fleet', 'status', '--at', address),
    ({ code }) => code === 1,
  )
  t.match(silent, { said: /dead is not known to serve: it is Silent/ })
  t.match(await done('fleet', 'status', '--members', 'x'), { code: 2 })
  gateway.child.kill('SIGTERM')
  t.equal(await gateway.ended, 0)
  t.match(await done('admin', 'reset'), { code: 0, said: /has a new secret: Security:Bootstrap/ })
  t.match(await done('audit', 'export'), { code: 0, said: /"admin\.reset"/ })
  t.match(await done('fleet', 'accept'), { code: 1, said: /add --put-back/ })
  t.match(await done('fleet', 'accept', '--put-back'), { code: 0, said: /all tokens are void/ })
  t.match(await done('audit', 'export'), { code: 0, said: /"store\.restore"/ })
  const { password } = new URL(settings.connectionString)
  t.notOk((gateway.out() + gateway.err()).includes(password))
})

t.test('a start that could make no first admin creates nothing', async t => {
  const settings = await createSchema(t)
  const { Storage } = onDatabase(settings)
  const TokenIssuance = { Secret: 'T2Fa8Q1xKq0wq0nZ3JrV7cD5sYbL9uPe' }
  const run = commandsOn(t, { Storage, Security: { AgentAuth: { TokenIssuance } } })
  const { ended, err } = run('serve')
  t.equal(await ended, 1)
  t.match(err(), /^agent-gateway: Security:Bootstrap: AgentId and ClientSecret must be set for the first admin.*\n$/)
  const { rowCount } = await settings.admin.query('select from pg_namespace where nspname = $1', [settings.schema])
  t.equal(rowCount, 0)
})
