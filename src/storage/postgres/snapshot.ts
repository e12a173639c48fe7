import type { ReadAll } from '../feed.ts'
import { run } from '../operations.ts'
import type { Connections } from './connection.ts'

/** Reads all rows of a table that is followed, with the number of the last change that they show. */
export async function readAll<T>(
  connections: Connections,
  table: 'agents' | 'policies',
  seen: Parameters<ReadAll<T>>[0],
): Promise<void> {
  const client = await connections.acquire()
  let broken = true
  try {
    await connections.query(client, 'begin isolation level repeatable read read only')
    const { rows } = await connections.query(client, 'select coalesce(max(seq), 0) as seq from changes')
    // The method reads all rows of that table.
    const all = (await run(connections.over(client), { table, method: 'all', args: [] })) as readonly T[]
    await connections.query(client, 'commit')
    broken = false
    seen(all, rows[0]?.seq)
  } finally {
    client.release(broken)
  }
}
