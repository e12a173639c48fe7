/** A schema of the database as a whole: read while no gateway runs on it, or filled from elsewhere. */
import { sql } from 'kysely'
import type { PoolClient } from 'pg'
import { systemClock } from '../../clock.ts'
import { StartupError } from '../../errors.ts'
import { fencedForSureMs } from '../../fleet/peers.ts'
import { copiedTables, describeRows } from '../copy.ts'
import { createMigrations } from '../migrations.ts'
import type { Db } from '../schema.ts'
import { Connections } from './connection.ts'
import { prepareDatabase, withClient } from './migrate.ts'
import type { PostgresSettings } from './settings.ts'

const locked = (schema: string): string => [...copiedTables, 'members'].map(table => `${schema}.${table}`).join(', ')

/** Longest time of a statement, milliseconds. Between two of them the target may be read for longer. */
const copyMs = 60_000
/** Pause between two looks at the gateways. */
const lookMs = 250

/**
 * Fills the schema with what `work` puts into it, in one transaction. Gateways cannot start on it meanwhile.
 * @throws StartupError when it is not empty; nothing was created or changed then
 */
export async function fillPostgres<T>(settings: PostgresSettings, work: (db: Db) => Promise<T>): Promise<T> {
  const connections = new Connections(settings)
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
  return (await membersOf(client)).map(({ name }) => `gateway ${name}`).join(', ')
}

interface Member {
  readonly id: string
  readonly beat: number
  readonly name: string
}

export interface ReadOptions {
  /** How long a gateway must be silent to be taken for stopped, milliseconds. */
  readonly silent?: number
  /** Called with the names of the gateways that are watched for so long. */
  readonly onWatch: (names: string) => void
}

/**
 * Calls `work` with the tables of the schema. Gateways cannot write or start meanwhile.
 * @throws StartupError when a gateway runs on it, or another version wrote it
 */
export async function readPostgres<T>(
  settings: PostgresSettings,
  options: ReadOptions,
  work: (db: Db) => Promise<T>,
): Promise<T> {
  const connections = new Connections(settings)
  try {
    return await withClient(connections, settings, async client => {
      await assertCurrent(client, connections.over(client), settings)
      const stopped = await watchMembers(client, options)
      await client.query(`begin isolation level repeatable read; set local statement_timeout = ${copyMs};
        set local lock_timeout = ${copyMs}; set local idle_in_transaction_session_timeout = 0;
        lock table ${locked(settings.schema)} in share mode`)
      assertSilent(stopped, await membersOf(client))
      return work(connections.over(client))
    })
  } finally {
    await connections.close()
  }
}

async function assertCurrent(client: PoolClient, db: Db, { schema }: PostgresSettings): Promise<void> {
  const { rowCount } = await client.query(`select where to_regclass('${schema}.members') is not null`)
  if (rowCount === 0) throw new StartupError(`There is no gateway in the schema ${schema}: there is nothing to copy.`)
  const { rows } = await sql<{ name: string }>`select name from kysely_migration order by name`.execute(db)
  const steps = Object.keys(createMigrations({ bytes: 'bytea', count: 'bigint' })).sort()
  if (rows.map(({ name }) => name).join() === steps.join()) return
  throw new StartupError(`Another version of the gateway wrote the schema ${schema}. Copy it with that version.`)
}

async function membersOf(client: PoolClient): Promise<readonly Member[]> {
  const { rows } = await client.query<Member>('select id, beat, name from members order by name')
  return rows
}

/** Waits until every gateway that is registered has been silent for so long that it has stopped. Returns them. */
async function watchMembers(client: PoolClient, options: ReadOptions): Promise<readonly Member[]> {
  const { silent = fencedForSureMs, onWatch } = options
  const first = await membersOf(client)
  if (first.length > 0) onWatch(first.map(({ name }) => name).join(', '))
  const end = systemClock.steady() + silent
  for (let rows = first; rows.length > 0 && systemClock.steady() < end; ) {
    await new Promise(resolve => setTimeout(resolve, Math.min(lookMs, silent)))
    rows = await membersOf(client)
    assertSilent(first, rows)
  }
  return first
}

/** @throws StartupError when a gateway has registered or taken a turn */
function assertSilent(before: readonly Member[], now: readonly Member[]): void {
  const running = now.filter(({ id, beat }) => !before.some(old => old.id === id && old.beat === beat))
  if (running.length === 0) return
  const names = running.map(({ name }) => name).join(', ')
  throw new StartupError(`Gateways run on the database: ${names}. Stop them first.`)
}
