/** What is followed: rows of the table of changes become changes of a channel, and whole tables are read beside them. */
import type { CredentialVersion } from '../credentials.ts'
import { type EventHistory, keptEvents, type StoredEvent } from '../events.ts'
import { Channel, type Feeds, type ReadAll } from '../feed.ts'
import { run } from '../operations.ts'
import type { AgentRecord, PolicyRecord } from '../store.ts'
import type { DatabaseConnections } from './connection.ts'
import { type FeedRow, latestEvents } from './turn.ts'

/** Does work between two turns. */
type InQueue = <T>(work: () => Promise<T>) => Promise<T>
type ChannelQuery = (text: string, values?: readonly unknown[]) => Promise<{ readonly rows: readonly unknown[] }>

export class Channels implements Feeds {
  readonly agents: Channel<AgentRecord>
  readonly policies: Channel<PolicyRecord>
  readonly credentials: Channel<CredentialVersion>
  readonly tokens: Channel<string>
  readonly grants: Channel<never, undefined>
  readonly events: Channel<StoredEvent, EventHistory>
  readonly #connections: DatabaseConnections

  constructor(connections: DatabaseConnections, inQueue: InQueue) {
    this.#connections = connections
    this.agents = new Channel(onMessage => inQueue(() => this.#readTable('agents', onMessage)))
    this.policies = new Channel(onMessage => inQueue(() => this.#readTable('policies', onMessage)))
    this.credentials = new Channel(onMessage => inQueue(() => this.#readTable('credentials', onMessage)))
    this.tokens = new Channel(onMessage => inQueue(() => this.#readTable('tokens', onMessage)))
    this.grants = new Channel(onMessage => inQueue(() => this.#readAt(async seq => () => onMessage(undefined, seq))))
    this.events = new Channel(onMessage => inQueue(() => this.#readEvents(onMessage)))
  }

  /** Whether a gateway can decide with what it follows. */
  get areFollowed(): boolean {
    return this.agents.isFollowed && this.policies.isFollowed
  }

  /** In force when it resolves; undefined when it is already. */
  apply({ seq, table, key, payload }: FeedRow): Promise<unknown> | undefined {
    // Written by `commit_write` from such a record.
    const now = payload === null ? undefined : JSON.parse(payload)
    if (table === 'agents') return this.agents.publish(key, now, seq)
    if (table === 'policies') return this.policies.publish(key, now, seq)
    if (table === 'credentials') return this.credentials.publish(key, now, seq)
    if (table === 'tokens') return this.tokens.publish(key, now, seq)
    if (table === 'grants') return this.grants.publish(key, undefined, seq)
    if (table === 'events') return this.events.publish(key, { ...now, seq }, seq)
    // Of a later version, which runs beside this one.
    return undefined
  }

  reload(): Promise<unknown> {
    const channels = [this.agents, this.policies, this.credentials, this.tokens, this.grants, this.events]
    return Promise.all(channels.map(channel => channel.reload()))
  }

  async #readTable<T>(
    table: 'agents' | 'policies' | 'credentials' | 'tokens',
    onMessage: Parameters<ReadAll<readonly T[]>>[0],
  ): Promise<void> {
    await this.#readAt(async (seq, _, db) => {
      // The method reads all rows of that table.
      const all = (await run(db, { table, method: 'all', args: [] })) as readonly T[]
      return () => onMessage(all, seq)
    })
  }

  async #readEvents(onMessage: Parameters<ReadAll<EventHistory>>[0]): Promise<void> {
    await this.#readAt(async (seq, query) => {
      const { rows } = await query(latestEvents, [keptEvents])
      // The columns of the query.
      const [first] = rows as { epoch: string; list: readonly FeedRow[] }[]
      const { epoch = '', list = [] } = first ?? {}
      const events = list.map(row => ({ ...JSON.parse(row.payload ?? 'null'), seq: row.seq }))
      // Less than are kept at least: there never were more.
      const after = events.length < keptEvents ? 0 : events[0].seq - 1
      return () => onMessage({ epoch, after, events }, seq)
    })
  }

  /** Reads in one snapshot; `work` gets the number of the last change that it shows. */
  async #readAt(
    work: (seq: number, query: ChannelQuery, db: ReturnType<DatabaseConnections['over']>) => Promise<() => void>,
  ): Promise<void> {
    const done = await this.#connections.use(async client => {
      const query: ChannelQuery = (text, values = []) => this.#connections.query(client, text, values)
      await query('begin isolation level repeatable read read only')
      const { rows } = await query('select coalesce(max(seq), 0) as seq from changes')
      // The one column of the one row.
      const [newest] = rows as { seq: number }[]
      const done = await work(newest?.seq ?? 0, query, this.#connections.over(client))
      await query('commit')
      return done
    })
    done()
  }
}
