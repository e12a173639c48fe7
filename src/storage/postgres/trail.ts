import { asError } from '../../base/as-error.ts'
import { StartupError } from '../../base/refusals.ts'
import type { Db } from '../schema.ts'
import type { AuditTable } from '../store.ts'
import { audit } from '../tables/audit.ts'
import { DatabaseConnections } from './connection.ts'
import { connectProblem } from './migrate.ts'
import type { PostgresSettings } from './settings.ts'

export interface PostgresTrail extends Pick<AuditTable, 'after' | 'list'> {
  close(): Promise<void>
}

/**
 * The audit trail of a schema, to read only, also while a gateway runs on it. Its methods reject with StartupError when
 * there is none that can be read.
 */
export function openPostgresTrail(settings: PostgresSettings): PostgresTrail {
  const connections = new DatabaseConnections({ ...settings, poolSize: 1 })
  async function read<T>(work: (db: Db) => Promise<T>): Promise<T> {
    const client = await connections.acquire().catch(error => {
      throw new StartupError(connectProblem(error))
    })
    try {
      return await work(connections.over(client))
    } catch (error) {
      throw new StartupError(`The schema ${settings.schema} has no audit trail to read: ${asError(error).message}`)
    } finally {
      client.release()
    }
  }
  return {
    after: (seq, limit) => read(db => audit.after(db, seq, limit)),
    list: (page, filter) => read(db => audit.list(db, page, filter)),
    close: () => connections.close(),
  }
}
