import { type DatabaseIntrospector, type Kysely, PostgresDialect, sql } from 'kysely'

/**
 * Migrations look at the schema of this gateway alone. Kysely's own look is at all schemas of the database: it fails when
 * another one is dropped meanwhile.
 */
export class OwnSchemaDialect extends PostgresDialect {
  override createIntrospector(db: Kysely<unknown>): DatabaseIntrospector {
    return {
      async getSchemas() {
        const { rows } = await sql<{ name: string }>`
          select nspname as name from pg_namespace where nspname = current_schema()`.execute(db)
        return rows
      },
      async getTables() {
        const { rows } = await sql<{ schema: string; name: string }>`
          select nspname as schema, relname as name from pg_class join pg_namespace on pg_namespace.oid = relnamespace
          where nspname = current_schema() and relkind in ('r', 'p')`.execute(db)
        return rows.map(table => ({ ...table, isView: false, isForeign: false, columns: [] }))
      },
    }
  }
}
