import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import t from 'tap'
import { exportTrail, verifyTrail } from '../../src/audit/trail.ts'
import { openSqliteStore } from '../fixtures/sqlite.ts'
import { testdir } from '../fixtures/testdir.ts'

const directory = testdir(t)
const store = await openSqliteStore({ directory })
t.teardown(() => store.close())

/** Changes the file behind the back of the store. */
function alter(statement: string): void {
  const file = new DatabaseSync(join(directory, 'gateway.db'))
  file.exec(statement)
  file.close()
}

/** Makes the trail one of `count` entries. */
async function write(count: number): Promise<void> {
  alter('delete from audit')
  const entry = { actor: 'admin', action: 'agent.register', requestId: null, details: { after: { b: 1, a: ['x'] } } }
  await Promise.all(Array.from({ length: count }, (_, n) => store.audit.append({ ...entry, at: n, subject: `a${n}` })))
}

t.test('a trail as it was written verifies to its last hash, also one longer than a chunk', async t => {
  await write(1_203)
  const [last] = await store.audit.after(1_202, 1)
  t.strictSame(await verifyTrail(store.audit), { ok: true, entries: 1_203, lastHash: last?.hash })
})

t.test('an empty trail verifies', async t => {
  await write(0)
  t.strictSame(await verifyTrail(store.audit), { ok: true, entries: 0, lastHash: '0'.repeat(64) })
})

t.test('the hash can be computed from the published rule alone', async t => {
  await write(1)
  const [record] = await store.audit.after(0, 1)
  const canonical =
    '{"action":"agent.register","actor":"admin","at":0,"details":{"after":{"a":["x"],"b":1}},' +
    '"requestId":null,"seq":1,"subject":"a0"}'
  t.equal(
    record?.hash,
    createHash('sha256')
      .update('0'.repeat(64) + canonical)
      .digest('hex'),
  )
})

const alterations: [what: string, statement: string, firstBroken: number, why: RegExp][] = [
  ['changed details', `update audit set details = '{"after":"other"}' where seq = 3`, 3, /changed/],
  ['unreadable details', `update audit set details = 'x' where seq = 3`, 3, /changed/],
  ['another actor', `update audit set actor = 'nobody' where seq = 2`, 2, /changed/],
  ['another time', 'update audit set at = 99 where seq = 1', 1, /changed/],
  ['a request id', `update audit set requestId = 'r' where seq = 5`, 5, /changed/],
  ['another hash', `update audit set hash = 'abc' where seq = 4`, 4, /changed/],
  ['another link', `update audit set previous = 'abc' where seq = 4`, 4, /does not follow/],
  ['a record taken out', 'delete from audit where seq = 2', 2, /missing/],
  ['the first taken out', 'delete from audit where seq = 1', 1, /missing/],
  [
    'one put in front',
    `insert into audit select 0, at, actor, action, subject, requestId, details, previous, hash
    from audit where seq = 1`,
    1,
    /missing/,
  ],
  [
    'one copied to the end',
    `insert into audit select 6, at, actor, action, subject, requestId, details, previous, hash
    from audit where seq = 5`,
    6,
    /does not follow/,
  ],
]

for (const [what, statement, firstBroken, why] of alterations) {
  t.test(`${what}: the first broken record is named`, async t => {
    await write(5)
    alter(statement)
    t.match(await verifyTrail(store.audit), { ok: false, firstBroken, why })
  })
}

t.test('two records that changed places are found', async t => {
  await write(5)
  alter(
    'update audit set seq = 99 where seq = 2; update audit set seq = 2 where seq = 3; update audit set seq = 3 where seq = 99',
  )
  t.match(await verifyTrail(store.audit), { ok: false, firstBroken: 2, why: /does not follow/ })
})

t.test('the export is one line of JSON for each record, oldest first', async t => {
  await write(501)
  const lines: string[] = []
  for await (const line of exportTrail(store.audit)) lines.push(line)
  t.equal(lines.length, 501)
  t.ok(lines.every(line => line.endsWith('\n') && line.indexOf('\n') === line.length - 1))
  t.strictSame(
    lines.map(line => JSON.parse(line)),
    await store.audit.after(0, 1_000),
  )
})
