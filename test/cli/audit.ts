import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import t from 'tap'
import { runCommand } from '../../src/cli/commands.ts'
import { startGateway } from '../fixtures/gateway.ts'
import { fakeShell } from '../fixtures/shell.ts'
import { testdir } from '../fixtures/testdir.ts'

t.test('the trail of a running gateway is verified and exported, and what was changed in it is named', async t => {
  const gateway = await startGateway(t)
  await gateway.agent()
  await gateway.agent()
  const env = { STORAGE__DATADIRECTORY: join(gateway.directory, 'data') }

  const good = fakeShell(['audit', 'verify'], env)
  t.equal(await runCommand(good), 0)
  t.match(good.printed[0], /^3 entries are as they were written; the last hash is [0-9a-f]{64}$/)

  const exported = fakeShell(['audit', 'export'], env)
  t.equal(await runCommand(exported), 0)
  const entries = exported.printed.map(line => JSON.parse(line))
  t.match(entries, [{ seq: 1, action: 'agent.register' }, { seq: 2 }, { seq: 3 }])
  t.ok(good.printed[0]?.endsWith(entries[2].hash))
  const asJson = fakeShell(['audit', 'verify', '--json'], env)
  t.equal(await runCommand(asJson), 0)
  const result = { ok: true, entries: 3, lastHash: entries[2].hash }
  t.strictSame(
    asJson.printed.map(line => JSON.parse(line)),
    [result],
  )

  await gateway.close()
  const database = new DatabaseSync(join(gateway.directory, 'data/gateway.db'))
  // The table defends itself; whoever owns the file can take that away.
  const triggers = database.prepare(`select name from sqlite_master where type = 'trigger'`).all()
  for (const { name } of triggers) database.exec(`drop trigger "${name}"`)
  database.exec(`update audit set subject = 'someone else' where seq = 2`)
  database.close()
  const bad = fakeShell(['audit', 'verify'], env)
  t.equal(await runCommand(bad), 1)
  t.strictSame(bad.complained, ['broken at entry 2: record 2 was changed after it was written'])
  t.strictSame(bad.printed, [])
  const badJson = fakeShell(['audit', 'verify', '--json'], env)
  t.equal(await runCommand(badJson), 1)
  t.match(JSON.parse(badJson.printed[0] ?? ''), { ok: false, firstBroken: 2, why: /record 2 was changed/ })
  t.strictSame(badJson.complained, [])
})

t.test('where there is no trail, that is said', async t => {
  const shell = fakeShell(['audit', 'verify'], { STORAGE__DATADIRECTORY: testdir(t, {}) })
  t.equal(await runCommand(shell), 1)
  t.match(shell.complained[0], /gateway\.db has no audit trail to read/)
})
