/** Threats T07 and T75 of SECURITY.md: what a backup cannot know is unknown after it was brought back, and nothing is sent twice. */
import { copyFileSync, existsSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import t, { type Test } from 'tap'
import { runCommand } from '../../src/cli/commands.ts'
import { eventually, startGateway } from '../fixtures/gateway.ts'
import { startOrigin } from '../fixtures/origin.ts'
import { careful, startReview } from '../fixtures/review.ts'
import { fakeShell } from '../fixtures/shell.ts'
import { testdir } from '../fixtures/testdir.ts'

async function command(directory: string, ...args: string[]) {
  const shell = fakeShell(args, { STORAGE__DATADIRECTORY: join(directory, 'data') })
  const code = await runCommand(shell)
  return { code, said: [...shell.printed, ...shell.complained].join('\n') }
}

/** A gateway on what was brought back, and what is asked of it in each case. */
async function startAgain(t: Test, directory: string) {
  const gateway = await startGateway(t, { directory, config: { Policies: [careful] } })
  const { items } = JSON.parse((await gateway.manage('GET', '/audit?action=store.restore')).text)
  return { ...gateway, restores: items as { readonly details: object }[] }
}

/** One request was held when the copy was made, and was approved and sent since. */
async function sentSince(t: Test, copy: (directory: string) => Promise<void>) {
  const directory = testdir(t)
  const origin = await startOrigin(t)
  const review = await startReview(t, { directory, origin })
  const id = await review.hold('/pay')
  const grant = { minutes: 60, maxUses: 10 }
  const granted = await review.hold('/granted')
  t.equal((await review.approve(granted, { grant })).status, 200)
  // Its outcome is on record some moments after the answer.
  const outcome = async () => JSON.parse((await review.manage('GET', `/hitl/${granted}`)).text).pending.replay
  t.equal(await eventually(outcome, replay => replay === 'completed'), 'completed')
  const made = await review.manage('POST', `/agents/${review.bot.id}/keys`, { name: 'ci' })
  const key = JSON.parse(made.text) as { readonly id: string; readonly key: string }
  await copy(directory)
  t.equal((await review.manage('DELETE', `/keys/${key.id}`)).status, 200)
  t.equal((await review.approve(id)).status, 200)
  t.equal(origin.seen.length, 2)
  await review.close()
  return { directory, origin, id, token: review.bot.token, key: key.key }
}

async function isUnknown(
  t: Test,
  { directory, origin, id, token, key }: Awaited<ReturnType<typeof sentSince>>,
  why: RegExp,
) {
  const gateway = await startAgain(t, directory)
  const { manage, proxy, restores } = gateway
  t.match(restores, [{ actor: 'gateway', details: { why, unknown: 1, grants: 1, keys: 1, tokens: 'void' } }])
  t.match(gateway.log, [{ level: 'warn', message: /an older database was brought back/ }])
  t.equal((await proxy(token, origin.url)).status, 401, 'tokens of before are void')
  t.equal((await proxy(key, origin.url)).status, 401, 'and so are keys, which may have been revoked since')
  t.match(JSON.parse((await manage('GET', '/hitl/grants')).text), [])
  t.match(JSON.parse((await manage('GET', `/hitl/${id}`)).text), { status: 'Pending', pending: { replay: 'unknown' } })
  t.match(JSON.parse((await manage('POST', `/hitl/${id}/approve`)).text), { code: 'wrong_state' })
  t.equal(origin.seen.length, 2, 'nothing is sent by an approval that does not know')
  t.equal((await manage('POST', `/hitl/${id}/approve`, { resend: true })).status, 200)
  t.equal(origin.seen.length, 3)
  t.match(await command(directory, 'audit', 'verify'), { code: 0 })
  await gateway.close()
  t.equal((await startAgain(t, directory)).restores.length, 1, 'once')
}

t.test('a backup of a running gateway is brought back, and what may have moved on since is unknown', async t => {
  const target = join(testdir(t), 'backup')
  const since = await sentSince(t, async directory => {
    // Whoever has a backup could pose as any server (T75).
    writeFileSync(join(directory, 'data', 'ca.key'), 'the key of the certificate authority', { mode: 0o600 })
    t.match(await command(directory, 'backup', target), {
      code: 0,
      said: /gateway\.db, signing\.key, bootstrap\.json$/,
    })
    t.notOk(existsSync(join(target, 'ca.key')))
    for (const name of readdirSync(target)) t.equal(statSync(join(target, name)).mode & 0o777, 0o600, name)
    t.match(await command(directory, 'backup', target), { code: 1, said: /is not empty/ })
    t.match(await command(directory, 'restore', target), { code: 1, said: /in use by another gateway/ })
  })
  const restored = await command(since.directory, 'restore', target)
  t.match(restored, { code: 0, said: /the previous files are in .*before-restore-/ })
  await isUnknown(t, since, /it is a backup/)
})

t.test('a copy of the database that is brought back by hand is noticed', async t => {
  const target = join(testdir(t), 'copy.db')
  const since = await sentSince(t, async directory => {
    const source = new DatabaseSync(join(directory, 'data/gateway.db'), { readOnly: true })
    source.prepare('vacuum into ?').run(target)
    source.close()
  })
  t.notOk(existsSync(join(since.directory, 'data/gateway.db-wal')))
  copyFileSync(target, join(since.directory, 'data/gateway.db'))
  await isUnknown(t, since, /its audit trail ends before entry \d+/)
})

t.test('a folder without a backup, or none, is refused', async t => {
  const directory = testdir(t)
  t.match(await command(directory, 'restore', directory), { code: 1, said: /contains no backup/ })
  t.match(await command(directory, 'backup', join(directory, 'b')), { code: 1, said: /nothing to back up/ })
  t.match(await command(directory, 'backup'), { code: 2, said: /name the DIRECTORY/ })
  t.match(await command(directory, 'restore'), { code: 2, said: /name the DIRECTORY/ })
})
