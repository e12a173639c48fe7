/** A gateway with everything that it can keep moves to PostgreSQL, and what must not be copied is refused. */

import { equal } from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { copyFileSync, cpSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import t, { type Test } from 'tap'
import { runCommand } from '../../src/cli/commands.ts'
import type { Shell } from '../../src/cli/shell.ts'
import { link } from '../../src/storage/chain.ts'
import { copiedTables } from '../../src/storage/copy.ts'
import { openPostgresStore } from '../../src/storage/postgres/open.ts'
import { eventually, merge, onDatabase, startGateway } from '../fixtures/gateway.ts'
import { startOrigin } from '../fixtures/origin.ts'
import { createSchema } from '../fixtures/postgres.ts'
import { runMain } from '../fixtures/process.ts'
import { careful, startReview } from '../fixtures/review.ts'
import { fakeShell } from '../fixtures/shell.ts'
import { openSqliteStore } from '../fixtures/sqlite.ts'
import { testdir } from '../fixtures/testdir.ts'
import { entry } from '../storage/contract/samples.ts'

type Database = Awaited<ReturnType<typeof createSchema>>

/** The address comes by the environment, as the help advises. */
async function copy(
  { connectionString, schema }: Database,
  args: readonly string[],
  over: Partial<Shell> = {},
  set = {},
) {
  const env = { AGENT_GATEWAY_STORAGE_TO: connectionString, ...set }
  const shell = fakeShell(['storage', 'copy', '--schema', schema, '--tls', 'Off', ...args], env)
  const code = await runCommand({ ...shell, ...over })
  const said = [...shell.printed, ...shell.complained].join('\n')
  return { code, said }
}

/** All rows, with bytes in hex. */
function dumpFolder(directory: string): Record<string, readonly unknown[]> {
  const database = new DatabaseSync(join(directory, 'gateway.db'), { readOnly: true })
  const rows = copiedTables.map(table => [table, database.prepare(`select * from ${table}`).all().map(plain)] as const)
  database.close()
  return Object.fromEntries(rows.map(([table, all]) => [table, sorted(all)]))
}

async function dumpSchema({ admin }: Database): Promise<Record<string, readonly unknown[]>> {
  const dumped: Record<string, readonly unknown[]> = {}
  for (const table of copiedTables) {
    const { rows } = await admin.query(`select * from ${table}`)
    const types = await admin.query(
      `select column_name as name from information_schema.columns
      where table_schema = current_schema() and table_name = $1 and data_type = 'bigint'`,
      [table],
    )
    const numbers = new Set(types.rows.map(({ name }) => name))
    const toNumber = ([name, value]: [string, unknown]) =>
      [name, numbers.has(name) && value !== null ? Number(value) : value] as const
    dumped[table] = sorted(rows.map(row => plain(Object.fromEntries(Object.entries(row).map(toNumber)))))
  }
  return dumped
}

const plain = (row: object): object =>
  Object.fromEntries(
    Object.entries(row)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, value]) => [name, value instanceof Uint8Array ? Buffer.from(value).toString('hex') : value]),
  )
const sorted = (rows: readonly object[]) => rows.map(row => JSON.stringify(row)).sort()

async function hasSchema({ admin, schema }: Database): Promise<boolean> {
  return (await admin.query('select from pg_namespace where nspname = $1', [schema])).rowCount !== 0
}

let full: ReturnType<typeof fillFolder> | undefined

/** A data folder with something in every table, which this test may change; `waiting` is held. */
async function fullFolder(t: Test) {
  full ??= fillFolder()
  const { data: filled, ...rest } = await full
  const data = join(testdir(t), 'data')
  cpSync(filled, data, { recursive: true })
  return { data, ...rest }
}

/** The folder of a gateway that did all that it keeps, and is closed: for all tests of this file. */
async function fillFolder() {
  const directory = testdir(t)
  const origin = await startOrigin(t, (_, res) => void res.end('the answer'))
  // Nothing listens there: its message is left.
  const config = { HumanInTheLoop: { Webhooks: [{ Url: 'http://127.0.0.1:9/' }] } }
  const review = await startReview(t, { directory, origin, config })
  const sent = await review.hold('/sent', { body: 'sent ü' })
  equal((await review.approve(sent, { grant: { minutes: 60, maxUses: 10 } })).status, 200)
  const outcome = async () => JSON.parse((await review.manage('GET', `/hitl/${sent}`)).text).pending.replay
  equal(await eventually(outcome, replay => replay === 'completed'), 'completed')
  const headers = { 'Idempotency-Key': 'k2' }
  const granted = await review.proxy(review.bot.token, `${origin.url}/sent`, { method: 'POST', headers })
  equal(await granted.text(), 'the answer')
  const denied = await review.hold('/denied', { body: 'no' })
  equal((await review.deny(denied, { comment: 'never' })).status, 200)
  const waiting = await review.hold('/waiting', { body: 'held body', headers: { 'Idempotency-Key': 'k1' } })
  equal((await review.manage('POST', `/agents/${review.bot.id}/keys`, { name: 'ci' })).status, 201)
  await review.policy({ name: 'made-over-the-api', default: 'Deny' })
  await review.close()
  const data = join(directory, 'data')
  const store = await openSqliteStore({ directory: data })
  const seen = { agentId: review.bot.id, server: 'https://mcp.example/mcp', digests: { tool: 'd'.repeat(64) }, at: 1 }
  await store.tools.keep(seen, { maxServers: 10, maxBytes: 1_000 })
  await store.messages.keep({ channel: 'C1', reference: '1', hitlId: waiting, state: 'Pending ', shown: '[]' })
  await store.identities.set(review.bot.id, [{ provider: 'slack', team: 'T1', user: 'U1' }], entry('agent.identities'))
  await store.subscriptions.key(Buffer.from('sealed'))
  const browser = {
    id: 'b1',
    agentId: review.bot.id,
    endpoint: 'https://push.example/1',
    p256dh: 'key',
    auth: 'secret',
  }
  await store.subscriptions.keep({ ...browser, createdAt: 1 }, 5, entry('push.subscribe'))
  await store.shapes.add([], [review.bot.id], { maxOfAgent: 10, max: 10, maxDays: 1 }, 1)
  const sample = { id: 's1', agentId: review.bot.id, digest: 'd', at: 1, sealed: Uint8Array.from([1, 2]) }
  await store.shapes.keepSamples([sample], { maxOfAgent: 1, maxOfShape: 1, maxBytes: 10 })
  const asked = { begins: true, spent: 0, estimated: 0, calls: 0, keep: 0, reserved: 0, needed: 9, least: 9, ahead: 0 }
  await store.spend.lease([{ key: 'daily 1 2 an owner', ...asked, limit: 100, exact: false }], 1)
  const raise = { id: 'r1', budget: 'daily', holder: 'an owner', from: 1, until: 2, amount: 1, max: 9 }
  await store.spend.raise(raise, entry('budget.raise'))
  const grant = { version: 1, state: 'ready', rotates: 1, sealed: Uint8Array.from([3, 4]) } as const
  await store.credentials.put({ name: 'shop', subject: 'all', ...grant }, {})
  await store.agents.reset(review.bot.id, { status: 'Active' }, entry('admin.reset'))
  await store.close()
  return { data, origin, waiting }
}

t.test('a gateway moves to PostgreSQL, and goes on there', async t => {
  const database = await createSchema(t)
  const { data, origin, waiting } = await fullFolder(t)
  const before = dumpFolder(data)
  for (const table of copiedTables) t.ok(before[table]!.length > 0, `the sample has rows in ${table}`)
  const verify = fakeShell(['audit', 'verify'], { STORAGE__DATADIRECTORY: data })
  t.equal(await runCommand(verify), 0)
  const lastHash = verify.printed[0]!.slice(-64)

  const there = await copy(database, ['--from', data])
  t.equal(there.code, 0, there.said)
  t.match(there.said, `the audit trail was verified at the target; the last hash is ${lastHash}`)
  for (const table of copiedTables) t.match(there.said, new RegExp(`^${table} +${before[table]!.length}$`, 'm'))
  t.match(there.said, `SECURITY__AGENTAUTH__TOKENISSUANCE__SECRET: the text of ${join(data, 'signing.key')}`)
  const secret = readFileSync(join(data, 'signing.key'), 'utf8').trim()
  t.notOk(there.said.includes(secret), 'no key is shown')
  t.strictSame(await dumpSchema(database), before)
  t.strictSame(dumpFolder(data), before, 'the source is as it was')

  const store = await openPostgresStore({ settings: database })
  await store.audit.append(entry('went.on'))
  const wentOn = await store.audit.list({ page: 1, pageSize: 1 }, { action: 'went.on' })
  t.match(wentOn, { items: [{ previous: lastHash }], totalCount: 1 })
  await store.close()

  // The admin of the folder goes on too.
  const directory = testdir(t, { data: {} })
  copyFileSync(join(data, 'bootstrap.json'), join(directory, 'data', 'bootstrap.json'))
  const Security = { AgentAuth: { TokenIssuance: { Secret: secret } } }
  const config = merge(onDatabase(database), { Policies: [careful], Security })
  const gateway = await startGateway(t, { directory, config })
  const sentBefore = origin.seen.length
  t.equal((await gateway.manage('POST', `/hitl/${waiting}/approve`)).status, 200)
  t.equal(origin.seen.length, sentBefore + 1)
  t.equal(origin.seen.at(-1)!.body.toString(), 'held body', 'what was sealed is sent as it was held')
})

t.test('a secret that was set for the gateways to come does not hide the key of the folder', async t => {
  const database = await createSchema(t)
  const gateway = await startGateway(t)
  await gateway.close()
  const data = join(gateway.directory, 'data')
  const set = { SECURITY__AGENTAUTH__TOKENISSUANCE__SECRET: randomBytes(48).toString('base64') }
  const { code, said } = await copy(database, ['--from', data], {}, set)
  t.equal(code, 0, said)
  t.match(said, `TOKENISSUANCE__SECRET: the text of ${join(data, 'signing.key')}`)
  t.match(said, /or Security:AgentAuth:TokenIssuance:Secret, as it is configured now, if the gateway on the folder ran/)
})

t.test('a source that is in use is not copied, and nothing is created', async t => {
  const database = await createSchema(t)
  const gateway = await startGateway(t)
  t.match(await copy(database, ['--from', join(gateway.directory, 'data')]), {
    code: 1,
    said: /in use by another gateway/,
  })
  t.notOk(await hasSchema(database))
  await gateway.close()
})

t.test('a target that is not empty is refused and unchanged', async t => {
  const database = await createSchema(t)
  const { data } = await fullFolder(t)
  const store = await openPostgresStore({ settings: database })
  await store.audit.append(entry('was.there'))
  await store.close()
  const before = await dumpSchema(database)
  t.match(await copy(database, ['--from', data]), { code: 1, said: /schema test_\w+ is not empty: audit 1\./ })
  t.strictSame(await dumpSchema(database), before)
})

t.test('what PostgreSQL cannot hold, and a broken trail, is named before anything is written', async t => {
  const cases: readonly [string, RegExp][] = [
    [`update agents set name = 'a' || char(0) || 'b' where rowid = 1`, /agents\.name of "\S+" has U\+0000/],
    [`update hitl set attempt = 3000000000`, /hitl\.attempt of "\S+" has U\+0000 or a value/],
    [`update grants set "expiresAt" = 'soon'`, /grants\.expiresAt of /],
    [`update audit set subject = 'someone else' where seq = 2`, /trail of the source is broken at entry 2/],
  ]
  const database = await createSchema(t)
  for (const [change, said] of cases) {
    const { data } = await fullFolder(t)
    const connection = new DatabaseSync(join(data, 'gateway.db'))
    connection.exec(change)
    connection.close()
    t.match(await copy(database, ['--from', data]), { code: 1, said })
    t.notOk(await hasSchema(database), change)
  }
})

t.test('a wrong command line says what to change, and shows no password', async t => {
  const database = await createSchema(t)
  const { data } = await fullFolder(t)
  const wrong = Object.assign(new URL(database.connectionString), { password: 'hunter22' }).href
  const cases: readonly [readonly string[], number, RegExp][] = [
    [[data, wrong], 2, /name the source with --from and the target with --to/],
    [['--from', data, '--to', 'elsewhere'], 2, /--to must be postgres:/],
    [['--from', wrong, '--to', data], 2, /--from must be a data folder: there is no copy out of a database/],
    [['--from', wrong, '--to', wrong], 2, /--from must be a data folder/],
    [['--to', wrong], 2, /--from is missing/],
    [['--from', data, '--to', wrong], 1, /the user or the password is wrong\. Set --to\./],
    [['--from', data, '--to', 'host=db password=hunter22'], 2, /--to must be postgres:/],
    [
      ['--from', data, '--to', 'postgres://u:hunter22@db.example/d'],
      1,
      /--tls: must be VerifyFull, because db\.example/,
    ],
    [['--from', data, '--to', `${wrong}?sslmode=disable`], 1, /TLS is set by --tls and --ca-file/],
    [['--from', join(data, 'none'), '--to', wrong], 1, /does not exist: there is nothing to copy/],
    [['--from', data, '--to', wrong, '--schema', 'x; drop'], 1, /--schema: must be up to 51 lower-case letters/],
    // A gateway could not be started on such a copy.
    [['--from', data, '--to', wrong, '--schema', 'x'.repeat(52)], 1, /--schema: must be up to 51 lower-case letters/],
    [['--from', data, '--to', wrong, '--tls', 'prefer'], 1, /--tls: must be VerifyFull or Off/],
  ]
  for (const [args, code, said] of cases) {
    const answer = await copy(database, args)
    t.match(answer, { code, said })
    t.notMatch(answer.said, /hunter22/)
  }
  const unset = { AGENT_GATEWAY_STORAGE_TO: '' }
  t.match(await copy(database, ['--from', data], {}, unset), { code: 2, said: /--to is missing/ })
  t.notOk(await hasSchema(database))
})

for (const signal of ['SIGINT', 'SIGKILL'] as const) {
  t.test(`a copy that ${signal} ends half way leaves nothing behind`, async t => {
    const database = await createSchema(t)
    const cwd = testdir(t, {})
    const data = join(cwd, 'data')
    await (await openSqliteStore({ directory: data })).close()
    writeTrail(data, 20_000)
    const args = ['storage', 'copy', '--from', 'data', '--schema', database.schema, '--tls', 'Off']
    const run = runMain(t, args, { cwd, env: { AGENT_GATEWAY_STORAGE_TO: database.connectionString } })
    const backends = async () => {
      const { rows } = await database.admin.query(
        `select query from pg_stat_activity where application_name = $1 and backend_xid is not null`,
        [`agent-gateway/${database.schema}`],
      )
      return rows.map(({ query }) => String(query))
    }
    await eventually(backends, queries => queries.some(query => query.startsWith('insert into "audit"')))
    run.child.kill(signal)
    t.equal(await run.ended, signal === 'SIGINT' ? 1 : 'SIGKILL')
    if (signal === 'SIGINT') t.match(run.err(), /Interrupted\. Nothing was copied\./)
    t.strictSame(await eventually(backends, queries => queries.length === 0), [])
    t.notOk(await hasSchema(database))
    t.match(await copy(database, ['--from', data]), { code: 0, said: /^audit +20000$/m }, 'it can be done again')
  })
}

function writeTrail(directory: string, count: number): void {
  const connection = new DatabaseSync(join(directory, 'gateway.db'))
  const insert = connection.prepare('insert into audit values (?, ?, ?, ?, ?, ?, ?, ?, ?)')
  connection.exec('begin')
  let last: ReturnType<typeof link> | undefined
  for (let n = 0; n < count; n++) {
    last = link(entry('some.action'), last)
    const { seq, at, actor, action, subject, previous, hash } = last
    insert.run(seq, at, actor, action, subject, null, '{}', previous, hash)
  }
  connection.exec('commit')
  connection.close()
}
