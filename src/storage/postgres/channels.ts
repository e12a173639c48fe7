/** What is followed: rows of the table of changes become changes of a channel, and whole tables are read beside them. */
import type { PoolClient } from 'pg'
import { type EventHistory, keptEvents } from '../events.ts'
import { Channel, type Channels, publish } from '../feed.ts'
import type { TableName } from '../methods.ts'
import { run } from '../operations.ts'
import type { Db } from '../schema.ts'
import type { DatabaseConnections } from './connection.ts'
import { type FeedRow, latestEvents } from './turn.ts'

/** Does work between two turns. */
type InQueue = <T>(work: () => Promise<T>) => Promise<T>
type ChannelQuery = (text: string, values?: readonly unknown[]) => Promise<{ readonly rows: readonly unknown[] }>

export function createChannels(connections: DatabaseConnections, inQueue: InQueue): Channels {
  /** Reads in one snapshot; `read` also gets the number of the last change that it shows. */
  function snapshot<T, All>(read: (query: ChannelQuery, db: Db) => Promise<All>): Channel<T, All> {
    const readAt = async (client: PoolClient) => {
      const query: ChannelQuery = (text, values = []) => connections.query(client, text, values)
      await query('begin isolation level repeatable read read only')
      const { rows } = await query('select coalesce(max(seq), 0) as seq from changes')
      // The one column of the one row.
      const [newest] = rows as { seq: number }[]
      const all = await read(query, connections.over(client))
      await query('commit')
      return { all, seq: newest?.seq ?? 0 }
    }
    return new Channel(onAll =>
      inQueue(async () => {
        const { all, seq } = await connections.use(readAt)
        onAll(all, seq)
      }),
    )
  }
  const whole = <T>(table: TableName) =>
    snapshot<T, readonly T[]>(async (_, db) => {
      const all = await run(db, { table, method: 'all', args: [] })
      // The method reads all rows of that table.
      return all as readonly T[]
    })
  return {
    agents: whole('agents'),
    policies: whole('policies'),
    credentials: whole('credentials'),
    tokens: whole('tokens'),
    grants: snapshot(async () => undefined),
    events: snapshot(readEvents),
  }
}

/** Whether a gateway can decide with what it follows. */
export const canDecide = ({ agents, policies }: Channels): boolean => agents.isFollowed && policies.isFollowed

async function readEvents(query: ChannelQuery): Promise<EventHistory> {
  const { rows } = await query(latestEvents, [keptEvents])
  // The columns of the query.
  const [first] = rows as { epoch: string; list: readonly FeedRow[] }[]
  const { epoch = '', list = [] } = first ?? {}
  const events = list.map(row => ({ ...JSON.parse(row.payload ?? 'null'), seq: row.seq }))
  // Less than are kept at least: there never were more.
  return { epoch, after: events.length < keptEvents ? 0 : events[0].seq - 1, events }
}

/** In force when it resolves; undefined when it is already, and for a table of a later version, which runs beside this one. */
export function publishRow(channels: Channels, row: FeedRow): Promise<unknown> | undefined {
  const { seq, table, key, payload } = row
  if (!Object.hasOwn(channels, table)) return undefined
  // Written by `commit_write` from such a record.
  const now = payload === null ? undefined : JSON.parse(payload)
  return publish(channels, { table, key, now: table === 'events' ? { ...now, seq } : now }, seq)
}
