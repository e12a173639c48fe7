import { hash } from 'node:crypto'
import type { DatabaseSync } from 'node:sqlite'
import { sql } from 'kysely'
import type { Migration } from 'kysely/migration'
import { migrate } from '../migrations.ts'
import type { Db } from '../schema.ts'

/** `schemaDigest` of a database that this version has made: to make one and compare the two takes ten times as long at each start. */
const currentSchema = 'U1vCYdfmGop5_uoZAE02jKrJAgF0affIq43I8txDf7s'

/** Whether this version has made the tables, with all its steps. False when it cannot be told by the digest alone. */
export const isCurrent = (connection: DatabaseSync): boolean => schemaDigest(connection) === currentSchema

/** Of the steps that were done, and of all tables, indexes and triggers as they were made. */
export function schemaDigest(connection: DatabaseSync): string {
  const made = connection.prepare(
    `select name, sql from sqlite_schema where name not like 'sqlite_%'
    union all select name, 'step' from kysely_migration order by 1, 2`,
  )
  return hash('sha256', JSON.stringify(made.all()), 'base64url')
}

/**
 * What says that another version has made the tables; undefined: nothing does. Steps are not changed once they are released, but
 * before the first release they were.
 *
 * @param empty a database that gets the steps of the other one
 */
export async function versionProblem(
  found: Db,
  empty: Db,
  steps: Readonly<Record<string, Migration>>,
): Promise<string | undefined> {
  const { rows } = await sql<{ name: string }>`select name from kysely_migration order by name`.execute(found)
  const unknown = rows.find(({ name }) => !(name in steps))
  if (unknown !== undefined) return `schema step ${unknown.name} is unknown here`
  const done = new Set(rows.map(({ name }) => name))
  await migrate(empty, Object.fromEntries(Object.entries(steps).filter(([name]) => done.has(name))))
  const [there, wanted] = [await columnsOf(found), await columnsOf(empty)]
  const missing = wanted.find(column => !there.includes(column))
  if (missing !== undefined) return `${missing} is missing there`
  const more = there.find(column => !wanted.includes(column))
  return more && `${more} is unknown here`
}

async function columnsOf(db: Db): Promise<readonly string[]> {
  const { rows } = await sql<{ name: string }>`select tables.name || '.' || columns.name as name
    from sqlite_schema as tables, pragma_table_info(tables.name) as columns
    where tables.type = 'table' and tables.name not like 'sqlite_%' order by 1`.execute(db)
  return rows.map(({ name }) => name)
}
