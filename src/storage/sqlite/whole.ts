/** A data folder as a whole, read while no gateway runs on it. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import { StartupError } from '../../base/refusals.ts'
import { copiedTables } from '../copy.ts'
import type { Db } from '../schema.ts'
import { openDatabase } from './database.ts'

/**
 * Calls `work` with the tables in `directory`. No gateway can start on it meanwhile.
 * @throws StartupError when there is no database, it is in use, or PostgreSQL cannot hold what is in it
 */
export async function readSqlite<T>(directory: string, work: (db: Db) => Promise<T>): Promise<T> {
  const file = join(directory, 'gateway.db')
  if (!existsSync(file)) throw new StartupError(`${file} does not exist: there is nothing to copy.`)
  const database = await openDatabase({ directory, maxPages: undefined })
  try {
    const problem = unstorable(database.connection)
    if (problem !== undefined) throw new StartupError(`${file}: ${problem}. Change it there first.`)
    return await work(database.db)
  } finally {
    database.close()
  }
}

interface Column {
  readonly name: string
  readonly type: string
  readonly pk: number
}

/** The first value that PostgreSQL cannot hold: SQLite takes any value in any column, and U+0000 in texts. */
function unstorable(connection: DatabaseSync): string | undefined {
  for (const table of copiedTables) {
    // These columns are those of the pragma.
    const columns = connection
      .prepare(`select name, type, pk from pragma_table_info(?)`)
      .all(table) as unknown as Column[]
    const cases = columns.map(column => `when not coalesce(${fits(column)}, 1) then '${column.name}'`).join(' ')
    const key = columns.filter(({ pk }) => pk > 0).map(({ name }) => `"${name}"`)
    const query = `select * from (select ${key.join(` || ' ' || `)} as key, case ${cases} end as bad from ${table}) where bad is not null limit 1`
    const found = connection.prepare(query).get()
    if (found !== undefined) {
      return `${table}.${found['bad']} of ${JSON.stringify(found['key'])} has U+0000 or a value that PostgreSQL cannot store`
    }
  }
  return undefined
}

/** The key of the audit trail is a bigint in PostgreSQL. */
function fits({ name, type, pk }: Column): string {
  const quoted = `"${name}"`
  const safe = Number.MAX_SAFE_INTEGER
  const integer = (max: number) => `typeof(${quoted}) = 'integer' and ${quoted} between -${max} and ${max}`
  const conditions: Readonly<Record<string, string>> = {
    text: `typeof(${quoted}) = 'text' and instr(cast(${quoted} as blob), x'00') = 0`,
    integer: integer(pk > 0 ? safe : 2 ** 31 - 1),
    bigint: integer(safe),
    'double precision': `typeof(${quoted}) in ('real', 'integer')`,
    blob: `typeof(${quoted}) = 'blob'`,
  }
  return `${quoted} is null or ${conditions[type.toLowerCase()] ?? '0'}`
}
