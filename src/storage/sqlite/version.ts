import { sql } from 'kysely'
import type { Migration } from 'kysely/migration'
import { migrate } from '../migrations.ts'
import type { Db } from '../schema.ts'

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
