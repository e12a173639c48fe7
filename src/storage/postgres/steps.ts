/** The steps of the schema: which are missing, and whether gateways of other versions may run beside them. */
import { sql } from 'kysely'
import type { Migration } from 'kysely/migration'
import { StartupError } from '../../base/refusals.ts'
import { fencedForSureMs } from '../../fleet/peers.ts'
import { isOlder } from '../../fleet/version.ts'
import { createMigrations, migrate } from '../migrations.ts'
import type { Db } from '../schema.ts'
import { createByteCounts, createCommitWrite, createTables } from './commit-write.ts'
import { createLeaseTokens, createRates } from './rates.ts'
import { createSpendFunctions } from './spend.ts'

/** A step that only adds: older gateways run on beside it. With `needs` it takes away what those before that version use. */
export interface MigrationStep extends Migration {
  readonly needs?: string
}

/** Those of every engine, and then those that only this one has; by name, oldest first. */
export interface Steps {
  readonly common: Readonly<Record<string, MigrationStep>>
  readonly own: Readonly<Record<string, MigrationStep>>
}

export const stepsOf = (schema: string): Steps => ({
  common: createMigrations({ bytes: 'bytea', count: 'bigint' }),
  own: {
    '0001-functions': {
      async up(db) {
        const functions = [createCommitWrite, createByteCounts, createLeaseTokens, createSpendFunctions].flatMap(of =>
          of(schema),
        )
        for (const statement of [...createTables, createRates, ...functions]) await sql.raw(statement).execute(db)
      },
    },
  },
})

const tables = { common: 'kysely_migration', own: 'postgres_migration' } as const
/** One gateway registers at a time, in any schema of the database: none may miss the terms of another. */
export const registerLock = 1_095_190_359

/**
 * Names of the steps that the schema lacks, in the transaction that will run them.
 * @throws StartupError when this version cannot run on the schema
 */
export async function missingSteps(db: Db, steps: Steps, version: string): Promise<readonly string[]> {
  const missing: string[] = []
  const unknown: string[] = []
  for (const kind of ['common', 'own'] as const) {
    const known = Object.keys(steps[kind])
    const done = await namesIn(db, tables[kind])
    missing.push(...known.filter(name => !done.includes(name)))
    unknown.push(...done.filter(name => !known.includes(name)))
  }
  const needs = await neededVersion(db)
  if (needs !== undefined && isOlder(version, needs)) {
    throw new StartupError(`The database needs version ${needs} of the gateway or a later one; this is ${version}.`)
  }
  if (unknown.length > 0 && missing.length > 0) {
    throw new StartupError(
      `The database is of another line of versions: ${unknown.join(', ')} is unknown here, and ${missing.join(', ')} is missing there (store_version). Run the version that wrote it, or name another Storage:PostgreSQL:Schema.`,
    )
  }
  return missing
}

async function namesIn(db: Db, table: string): Promise<readonly string[]> {
  if (!(await isThere(db, table))) return []
  const { rows } = await sql<{ name: string }>`select name from ${sql.table(table)} order by name`.execute(db)
  return rows.map(({ name }) => name)
}

async function isThere(db: Db, table: string): Promise<boolean> {
  const { rows } = await sql<{ there: boolean }>`select to_regclass(${table}) is not null as there`.execute(db)
  return rows[0]?.there === true
}

async function neededVersion(db: Db): Promise<string | undefined> {
  if (!(await isThere(db, 'fleet'))) return undefined
  const { rows } = await sql<{ needs: string }>`select needs from fleet`.execute(db)
  return rows[0]?.needs
}

/**
 * Runs the steps that are missing.
 * @throws StartupError when a gateway runs that could not go on beside one of them
 */
export async function runSteps(db: Db, schema: string, steps: Steps, missing: readonly string[]): Promise<void> {
  const all: Readonly<Record<string, MigrationStep>> = { ...steps.common, ...steps.own }
  const contracts = missing.flatMap(name => {
    const needs = all[name]?.needs
    return needs === undefined ? [] : [{ name, needs }]
  })
  // No other gateway registers until this is committed; then it finds what is needed.
  if (contracts.length > 0) await sql`select pg_advisory_xact_lock(${registerLock})`.execute(db)
  for (const { name, needs } of contracts) await assertNoneBelow(db, name, needs)
  for (const kind of ['common', 'own'] as const) {
    const names = { migrationTableName: tables[kind], migrationLockTableName: `${tables[kind]}_lock` }
    await migrate(db, { ...steps[kind] }, { ...names, migrationTableSchema: schema })
  }
  for (const { needs } of contracts) {
    const before = await neededVersion(db)
    if (before !== undefined && isOlder(before, needs)) await sql`update fleet set needs = ${needs}`.execute(db)
  }
}

async function assertNoneBelow(db: Db, step: string, needs: string): Promise<void> {
  if (!(await isThere(db, 'members'))) return
  const { rows } = await sql<{ name: string; version: string }>`
    select name, version from members where seen = 0 or seen > clock_ms() - ${fencedForSureMs}::bigint order by name`.execute(
    db,
  )
  const old = rows.filter(({ version }) => isOlder(version, needs))
  if (old.length === 0) return
  const names = old.map(({ name, version }) => `${name} (version ${version})`).join(', ')
  throw new StartupError(
    `The step ${step} of the schema needs version ${needs} of every gateway that runs. Replace first: ${names}.`,
  )
}
