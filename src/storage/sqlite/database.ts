/**
 * Opens gateway.db: creates it atomically, refuses a file that it must not write, and migrates it.
 */
import { closeSync, existsSync, fsyncSync, mkdirSync, openSync, renameSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite'
import { Kysely, type SqliteDatabase, SqliteDialect, type SqliteStatement } from 'kysely'
import type { Migration } from 'kysely/migration'
import { asError } from '../../base/as-error.ts'
import { StartupError } from '../../base/refusals.ts'
import { systemClock } from '../../runtime/clock.ts'
import { bindable } from '../chain.ts'
import { createMigrations, migrate } from '../migrations.ts'
import { markRestored } from '../restored.ts'
import type { Db, Schema } from '../schema.ts'
import { type SendStatement, sendBy } from '../statement.ts'
import { WriteNotes } from '../unit.ts'
import { DatabaseFiles } from './files.ts'
import { flush } from './flush.ts'
import { contradiction, createMarker, markFile } from './mark.ts'
import type { WorkerOptions } from './protocol.ts'
import { createTriggers } from './triggers.ts'
import { isCurrent, versionProblem } from './version.ts'

export const migrations: Record<string, Migration> = {
  ...createMigrations({ bytes: 'blob', count: 'integer' }),
  '0001-triggers': { up: createTriggers },
}

/** Milliseconds that a statement waits for another process that holds the file: at the start, and later. */
const busyAtStart = 2_000
const busyTimeout = 200

/** Pages kept in memory, KiB: a list of ten thousand requests finds them there, and a small database takes less. */
const cacheKiB = 16_384

/** Bytes of a page: the default of SQLite, which this file has never changed. */
const pageSize = 4_096

/** One connection, and the tables behind it. */
export interface Connected {
  readonly connection: DatabaseSync
  readonly db: Db
}

/** `user_version` of a copy that a backup made. */
export const backupVersion = 1

export interface Database extends Connected {
  /** Repairs after an older database was restored, for the log; undefined when none was restored. */
  readonly restored: string | undefined
  /** Notes how far the audit trail has got (mark.ts). */
  readonly mark: () => void
  readonly files: DatabaseFiles
  close(): void
}

/** @throws StartupError when the folder or the file cannot be used; the file is unchanged then */
export async function openDatabase({
  directory,
  maxPages,
}: Pick<WorkerOptions, 'directory' | 'maxPages'>): Promise<Database> {
  const file = join(directory, 'gateway.db')
  const lock = claimFolder(directory)
  try {
    if (!existsSync(file)) await createDatabase(directory)
    await assertSound(file)
    assertUnused(file)
    assertWhole(file)
    const opened = connect(file)
    opened.connection.exec('pragma journal_mode = wal')
    if (maxPages !== undefined) opened.connection.exec(`pragma max_page_count = ${maxPages}`)
    if (!isCurrent(opened.connection)) await migrateWhole(opened, migrations)
    const restored = await takeUp(opened, directory)
    opened.connection.exec(`pragma busy_timeout = ${busyTimeout}`)
    const mark = createMarker(directory, opened.connection)
    const files = new DatabaseFiles(opened.connection, file)
    const close = (): void => {
      mark()
      opened.connection.close()
      lock.close()
    }
    return { ...opened, restored, mark, files, close }
  } catch (error) {
    lock.close()
    throw error instanceof StartupError
      ? error
      : new StartupError(`${file} cannot be opened: ${asError(error).message}`)
  }
}

/** Marks what an older database cannot know, when this is one. Returns what was done. */
async function takeUp({ connection, db }: Connected, directory: string): Promise<string | undefined> {
  const version = connection.prepare('pragma user_version').get()?.['user_version']
  const why = version === backupVersion ? 'it is a backup' : contradiction(directory, connection)
  if (why === undefined) return undefined
  connection.exec('begin immediate')
  const notes = new WriteNotes(db)
  const { unknown, grants } = await markRestored(notes, systemClock.now(), why)
  await flush(notes)
  connection.exec('pragma user_version = 0; commit')
  return `${why}: ${unknown} requests are unknown now, ${grants} grants removed, and tokens of before void`
}

/**
 * Makes the folder and keeps others out of it: each gateway holds agents and policies in memory, so a second one on the same
 * files would not learn of a revocation. The lock goes with the process, however it ends.
 */
export function claimFolder(directory: string): DatabaseSync {
  const file = join(directory, 'gateway.lock')
  try {
    mkdirSync(directory, { recursive: true, mode: 0o700 })
    makePrivate(file)
    const lock = new DatabaseSync(file)
    lock.exec('begin exclusive')
    return lock
  } catch (error) {
    if (isBusy(error)) throw new StartupError(`${directory} is in use by another gateway. Stop that one first.`)
    throw new StartupError(
      `${directory} cannot be written: ${asError(error).message}. Set Storage:DataDirectory to a writable folder.`,
    )
  }
}

/**
 * Keeps a second gateway out also when gateway.lock was removed or copied: as long as it is open, each connection to a
 * database in WAL mode holds a shared lock on the file itself, so no other process can get an exclusive one.
 */
export function assertUnused(file: string): void {
  const connection = new DatabaseSync(file, { timeout: busyAtStart })
  try {
    connection.exec('pragma locking_mode = exclusive; begin exclusive; rollback')
  } catch (error) {
    if (!isBusy(error)) throw error
    throw new StartupError(`${file} is in use by another gateway or program. Stop that one first.`)
  } finally {
    connection.close()
  }
}

/** SQLite accepts a file whose last page is cut off. Call this after the log was brought into the file. */
function assertWhole(file: string): void {
  const { size } = statSync(file)
  if (size % pageSize !== 0) throw unsound(file, `its last page is cut: ${size} bytes are no whole number of pages`)
}

function isBusy(error: unknown): boolean {
  return error instanceof Error && 'errcode' in error && error.errcode === 5
}

/** An empty file that only we can read. SQLite gives its companions the same mode. */
function makePrivate(file: string): void {
  closeSync(openSync(file, 'a', 0o600))
}

/** Under another name first: a crash then leaves no half-made gateway.db, and an empty one is always damage. */
async function createDatabase(directory: string): Promise<void> {
  const file = join(directory, 'gateway.db')
  assertNotLost(file, directory)
  const draft = `${file}.new`
  rmSync(draft, { force: true })
  rmSync(`${draft}-journal`, { force: true })
  makePrivate(draft)
  const opened = connect(draft)
  try {
    await migrateWhole(opened, migrations)
  } finally {
    opened.connection.close()
  }
  renameSync(draft, file)
  const folder = openSync(directory, 'r')
  fsyncSync(folder)
  closeSync(folder)
}

function assertNotLost(file: string, directory: string): void {
  if (existsSync(`${file}-wal`)) {
    throw new StartupError(`${file} is missing, but gateway.db-wal beside it exists. Restore both or remove both.`)
  }
  if (existsSync(join(directory, markFile))) {
    throw new StartupError(
      `${file} is missing, but ${markFile} beside it says that it was there. Restore it from a backup. If it is lost, ` +
        `remove ${markFile}: the gateway starts with an empty database, without agents and audit trail.`,
    )
  }
}

/**
 * Only reads, so that a rejected file is not changed.
 *
 * @throws StartupError when it is damaged, or another version has changed its schema
 */
export async function assertSound(file: string): Promise<void> {
  if (statSync(file).size === 0) throw new StartupError(`${file} is empty. Restore it from a backup or remove it.`)
  const connection = new DatabaseSync(file, { readOnly: true })
  const empty = new DatabaseSync(':memory:')
  try {
    const damage = damageIn(connection)
    if (damage !== undefined) throw unsound(file, damage)
    const problem = isCurrent(connection)
      ? undefined
      : await versionProblem(kyselyOver(connection), kyselyOver(empty), migrations)
    if (problem !== undefined) {
      throw new StartupError(
        `${file} was written by another version of the gateway (store_version: ${problem}). Run that version, or restore a backup of this one. To begin without its agents and audit trail, move the folder away.`,
      )
    }
  } catch (error) {
    if (error instanceof StartupError) throw error
    throw unsound(file, asError(error).message)
  } finally {
    empty.close()
    connection.close()
  }
}

function unsound(file: string, why: string): StartupError {
  return new StartupError(`${file} is not a valid gateway database: ${why}. Restore it from a backup.`)
}

/**
 * The first thing wrong with the tables. The trail is left out: it grows without bound, and `audit verify` checks it
 * thoroughly. So is what is sealed: it is authenticated when it is opened.
 */
function damageIn(connection: DatabaseSync): string | undefined {
  const found = connection.prepare(
    `select quick_check as line from pragma_table_list as tables, pragma_quick_check(tables.name)
    where tables.schema = 'main' and tables.name not in ('audit', 'hitl_sealed') and line != 'ok' limit 1`,
  )
  const line = found.get()?.['line']
  return line === undefined ? undefined : String(line).replaceAll(/\s+/g, ' ')
}

/** Opens `file` so that what is committed is on the disk. */
export function connect(file: string): Connected {
  const connection = new DatabaseSync(file, { timeout: busyAtStart })
  connection.exec(`pragma synchronous = full; pragma foreign_keys = on; pragma cache_size = -${cacheKiB}`)
  return { connection, db: kyselyOver(connection) }
}

/** The tables of a file that is not changed through them. */
export function kyselyOver(connection: DatabaseSync): Db {
  const database = adapt(connection)
  const db = new Kysely<Schema>({ dialect: new SqliteDialect({ database }) })
  const send: SendStatement = async <R>(text: string, parameters: readonly unknown[]) => {
    const statement = database.prepare(text)
    // The rows are of the type that Kysely gave the statement.
    if (statement.reader) return { rows: statement.all(parameters) as R[] }
    return { rows: [], numAffectedRows: BigInt(statement.run(parameters).changes) }
  }
  sendBy(db, send)
  return db
}

/** All missing steps or none: a crash in between leaves the schema unchanged. */
export async function migrateWhole(opened: Connected, steps: typeof migrations): Promise<void> {
  opened.connection.exec('begin immediate')
  await migrate(opened.db, steps)
  opened.connection.exec('commit')
}

/**
 * node:sqlite in the shape that Kysely's SqliteDialect takes. Statements are kept compiled, one for each text: the texts
 * of this layer are few, their parameters are bound.
 */
function adapt(db: DatabaseSync): SqliteDatabase {
  const statements = new Map<string, SqliteStatement>()
  return {
    prepare(text) {
      const known = statements.get(text)
      if (known !== undefined) return known
      const statement = toStatement(db.prepare(text))
      statements.set(text, statement)
      return statement
    },
    close: () => db.close(),
  }
}

function toStatement(statement: StatementSync): SqliteStatement {
  return {
    reader: statement.columns().length > 0,
    all: parameters => statement.all(...bound(parameters)),
    run: parameters => statement.run(...bound(parameters)),
    iterate: parameters => statement.iterate(...bound(parameters)),
  }
}

/** The types of the tables (schema.ts) hold nothing that the engine does not take, which Kysely cannot know. */
const bound = (parameters: readonly unknown[]) => parameters.map(bindable) as readonly SQLInputValue[]
