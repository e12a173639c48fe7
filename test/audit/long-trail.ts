/** A trail of a million entries, in a real store. */
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import t from 'tap'
import { createVerification } from '../../src/audit/verification.ts'
import { genesis, hashOfStored } from '../../src/storage/chain.ts'
import { openSqliteStore } from '../../src/storage/sqlite/open.ts'
import { runs } from '../fixtures/runs.ts'
import { testdir } from '../fixtures/testdir.ts'

const entries = runs(1_000_000, 80_000)
/** Behind the place that was never reached. */
const changed = Math.floor(entries * 0.95)
const actor = '0b8e8a4e-0f43-4c1b-9d0c-6a1f0a3c2b11'

function writeTrail(file: DatabaseSync): void {
  const insert = file.prepare('insert into audit values (?, ?, ?, ?, ?, ?, ?, ?, ?)')
  let previous = genesis
  file.exec('pragma synchronous = off; begin')
  for (let seq = 1; seq <= entries; seq++) {
    const row = { seq, at: seq, actor, action: 'a', subject: `s${seq}`, requestId: null, details: '{"a":1}', previous }
    previous = hashOfStored(row)
    const written = seq === changed ? 'somebody else' : actor
    insert.run(seq, row.at, written, row.action, row.subject, null, row.details, row.previous, previous)
  }
  file.exec('commit')
}

t.test('a changed entry far behind is reported by a gateway that started in the middle', async t => {
  const directory = testdir(t)
  await (await openSqliteStore({ directory })).close()
  const file = new DatabaseSync(join(directory, 'gateway.db'))
  writeTrail(file)
  file.close()
  const store = await openSqliteStore({ directory })
  t.teardown(() => store.close())
  /** Each look at the clock takes a millisecond: a step is over after a hundred stretches at most. */
  let time = 0
  const clock = { now: () => time, steady: () => (time += 1) }
  const seal = {
    close: (text: string) => Buffer.from(text),
    open: (sealed: Uint8Array) => Buffer.from(sealed).toString(),
  }
  const start = () => createVerification({ store, clock, log: { error() {} }, leads: () => true, seal })
  const first = start()
  await first.step()
  time += 30_000
  await first.step()
  const { status, reached } = first.state()
  t.equal(status, 'running')
  const second = start()
  await second.step()
  t.ok(second.state().reached > reached, 'it goes on where the first one was')
  for (let step = 0; step < 100 && second.state().status === 'running'; step++) {
    time += 2_000
    await second.step()
  }
  t.match(second.state(), {
    status: 'broken',
    firstBroken: changed,
    why: `record ${changed} was changed after it was written`,
  })
})
