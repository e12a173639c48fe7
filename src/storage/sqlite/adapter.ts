/** node:sqlite in the shape that Kysely's SqliteDialect takes. */
import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite'
import type { SqliteDatabase, SqliteStatement } from 'kysely'

/** Statements are kept compiled, one for each text: the texts of this layer are few, their parameters are bound. */
export function adapt(db: DatabaseSync): SqliteDatabase {
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

/** Kysely does not know which values the engine takes; the engine refuses others. */
function bound(parameters: readonly unknown[]): readonly SQLInputValue[] {
  // The types of the tables (schema.ts) hold nothing else.
  return parameters as readonly SQLInputValue[]
}
