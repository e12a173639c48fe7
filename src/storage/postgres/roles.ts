/** What the role of running gateways may do, when another role owns the schema. */
import type { ClientBase } from 'pg'
import { DatabaseConnections } from './connection.ts'
import { prepareDatabase, quoted } from './migrate.ts'
import { type PostgresSettings, parseAddress } from './settings.ts'

export interface Migrated {
  readonly steps: readonly string[]
  /** Who may run gateways now; undefined when the owner does. */
  readonly role: string | undefined
}

/**
 * Brings the schema up to date as its owner, and lets the user of `settings` run gateways on it.
 *
 * @param owner postgres://user:password@host:port/database
 * @throws StartupError with one line that says what to change; nothing was changed then
 */
export async function migrateAs(settings: PostgresSettings, owner: string): Promise<Migrated> {
  const asOwner: PostgresSettings = {
    ...{ ...settings, connectionString: owner, listenConnectionString: undefined },
    ...{ poolSize: 1, migrate: 'Auto' },
  }
  const { user } = parseAddress(settings)
  const role = user === parseAddress(asOwner).user ? undefined : user
  const connections = new DatabaseConnections(asOwner)
  const fill = async (client: ClientBase) => {
    if (role !== undefined) await grantTo(client, settings.schema, role)
  }
  try {
    return { steps: await prepareDatabase({ connections, settings: asOwner, fill }), role }
  } finally {
    await connections.close()
  }
}

/** Written by functions of the owner alone, or by steps of the schema. */
export const readOnly = [
  'audit',
  'kysely_migration',
  'kysely_migration_lock',
  'postgres_migration',
  'postgres_migration_lock',
]

/** Lets `role` run gateways on the schema. It can neither change the audit trail nor create or drop anything. */
async function grantTo(client: Pick<ClientBase, 'query'>, schema: string, role: string): Promise<void> {
  const name = quoted(role)
  const tables = readOnly.map(table => `${schema}.${table}`).join(', ')
  for (const statement of [
    `revoke all on schema ${schema} from ${name}`,
    `grant usage on schema ${schema} to ${name}`,
    `revoke all on all tables in schema ${schema} from ${name}`,
    `grant select, insert, update, delete on all tables in schema ${schema} to ${name}`,
    `revoke insert, update, delete on ${tables} from ${name}`,
    `revoke execute on all functions in schema ${schema} from public`,
    `grant execute on all functions in schema ${schema} to ${name}`,
  ])
    await client.query(statement)
}
