import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { asError } from '../../base/as-error.ts'
import { StartupError } from '../../base/refusals.ts'
import type { AuditTable } from '../store.ts'
import { audit } from '../tables/audit.ts'
import { kyselyOver } from './database.ts'

export interface SqliteTrail extends Pick<AuditTable, 'after' | 'list'> {
  close(): void
}

/**
 * The audit trail in `directory`, to read only, also while a gateway runs on it.
 * @throws StartupError when there is none that can be read
 */
export function openSqliteTrail(directory: string): SqliteTrail {
  const file = join(directory, 'gateway.db')
  try {
    const connection = new DatabaseSync(file, { readOnly: true, timeout: 2_000 })
    connection.exec('select 1 from audit limit 1')
    const db = kyselyOver(connection)
    return {
      after: (seq, limit) => audit.after(db, seq, limit),
      list: (page, filter) => audit.list(db, page, filter),
      close: () => connection.close(),
    }
  } catch (error) {
    throw new StartupError(`${file} has no audit trail to read: ${asError(error).message}`)
  }
}
