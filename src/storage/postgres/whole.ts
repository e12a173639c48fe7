/** A schema of the database as a whole, filled from elsewhere. */
import type { PoolClient } from 'pg'
import { StartupError } from '../../base/refusals.ts'
import { copiedTables, describeRows } from '../copy.ts'
import type { Db } from '../schema.ts'
import { DatabaseConnections } from './connection.ts'
import { prepareDatabase } from './migrate.ts'
import type { PostgresSettings } from './settings.ts'

const locked = (schema: string): string => [...copiedTables, 'members'].map(table => `${schema}.${table}`).join(', ')

/**
 * Fills the schema with what `work` puts into it, in one transaction. Gateways cannot start on it meanwhile.
 * @throws StartupError when it is not empty; nothing was created or changed then
 */
export async function fillPostgres<T>(settings: PostgresSettings, work: (db: Db) => Promise<T>): Promise<T> {
  const connections = new DatabaseConnections(settings)
  const filled: T[] = []
  try {
    const fill = async (client: PoolClient) => {
      // A gateway that is starting cannot register meanwhile.
      await client.query(`lock table ${locked(settings.schema)} in exclusive mode`)
      const db = connections.over(client)
      const found = [await describeRows(db), await describeMembers(client)].filter(text => text !== '').join(', ')
      if (found !== '') {
        throw new StartupError(`The schema ${settings.schema} is not empty: ${found}. Name another one with --schema.`)
      }
      filled.push(await work(db))
    }
    await prepareDatabase({ connections, settings, fill })
    return filled[filled.length - 1]!
  } catch (error) {
    if (filled.length === 0 || !(error instanceof StartupError)) throw error
    throw new StartupError(
      `${error.message} Whether the copy was committed is unknown: run the command again. If the schema is not empty then, the copy is complete.`,
    )
  } finally {
    await connections.close()
  }
}

async function describeMembers(client: PoolClient): Promise<string> {
  const { rows } = await client.query<{ name: string }>('select name from members order by name')
  return rows.map(({ name }) => `gateway ${name}`).join(', ')
}
