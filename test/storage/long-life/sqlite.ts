/** SQLite counts the steps of its machine: some for each row, and the same ones each time. */
import { join } from 'node:path'
import { DatabaseSync, type StatementSync } from 'node:sqlite'
import t from 'tap'
import { isWrite } from '../../../src/storage/methods.ts'
import { run } from '../../../src/storage/operations.ts'
import { kyselyOver } from '../../../src/storage/sqlite/database.ts'
import { flush } from '../../../src/storage/sqlite/flush.ts'
import { openSqliteStore } from '../../../src/storage/sqlite/open.ts'
import { WriteNotes } from '../../../src/storage/unit.ts'
import { longLife, sqliteSql } from '../../fixtures/long-life.ts'
import { runs } from '../../fixtures/runs.ts'
import { testdir } from '../../fixtures/testdir.ts'
import { type Bounded, byItself, ofPages } from './statements.ts'

const life = { past: runs(1_000_000, 50_000), waiting: 10_000 }
/** Most steps that a row takes: one that is changed has an entry in each index. */
const stepsOfRow = 10

/** The types lack it. */
interface Counting extends StatementSync {
  stat(counter: 'vmStep'): number
  resetStats(): void
}

const directory = testdir(t)
await (await openSqliteStore({ directory })).close()
const connection = new DatabaseSync(join(directory, 'gateway.db'))
t.teardown(() => connection.close())
connection.exec('pragma synchronous = off; pragma cache_size = -200000; begin')
for (const statement of longLife(sqliteSql, life)) connection.exec(statement)
connection.exec('commit')

const prepared: Counting[] = []
const prepare = connection.prepare.bind(connection)
connection.prepare = text => {
  const statement = prepare(text) as Counting
  prepared.push(statement)
  return statement
}
const db = kyselyOver(connection)

/** The steps of one call; what it changed is taken back. */
async function stepsOf({ asked }: Bounded): Promise<number> {
  for (const statement of prepared) statement.resetStats()
  if (isWrite(asked)) {
    connection.exec('begin')
    const notes = new WriteNotes(db)
    await run(notes, asked)
    await flush(notes)
    connection.exec('rollback')
  } else await run(db, asked)
  return prepared.reduce((sum, statement) => sum + statement.stat('vmStep'), 0)
}

t.test('whatever has piled up, each statement reads a bounded number of rows', async t => {
  for (const one of [...byItself(life), ...ofPages(life)]) {
    const steps = await stepsOf(one)
    t.ok(steps <= one.rows * stepsOfRow, `${one.what}: ${steps} steps, at most ${one.rows} rows`)
  }
})
