/** Whether the disk of the database has space. */
import { randomBytes } from 'node:crypto'
import { asError } from '../../base/as-error.ts'
import { inTime } from '../../runtime/clock.ts'
import { StoreError } from '../store-error.ts'
import type { DatabaseConnections } from './connection.ts'

/**
 * A row of the table `probe` needs no space: its page is there already, and rows that VACUUM has removed leave more. A file
 * that the server sets aside for the rows of a statement always begins with nothing. It has no log and is gone with the
 * transaction, so it costs memory of the system alone, most of the time. Other places for such files would tell nothing of
 * the disk with the tables.
 */
const begin = `begin; set local work_mem = '64kB'; set local temp_tablespaces = ''`
const fill = `with copies as materialized (select $1::bytea as bytes from generate_series(1, $2::int))
  select sum(length(bytes)) from copies`
/** Together more than a megabyte: less space counts as none. Random, so that no file system makes it much smaller. */
const bytes = 65_536
const copies = 17
/** SQLSTATE when the administrator allows no such files (temp_file_limit): that says nothing of the disk. */
const notAllowed = '53400'

/** @throws StoreError when the disk has no space for a megabyte, or it took longer than `limitMs` */
export async function assertSpace(connections: DatabaseConnections, limitMs: number): Promise<void> {
  const late = () => Promise.reject(new StoreError('the test of free space took too long'))
  try {
    await connections.use(async client => {
      const begun = connections.query(client, begin)
      const filled = connections.query(client, fill, [randomBytes(bytes), copies])
      const all = Promise.all([begun, filled, connections.query(client, 'commit')])
      await inTime(all, limitMs, late)
    })
  } catch (error) {
    const { code, message } = asError(error)
    if (code === notAllowed) return
    throw new StoreError(`no space on the disk of the database: ${message}`, { cause: error })
  }
}
