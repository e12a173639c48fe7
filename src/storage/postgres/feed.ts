/**
 * The feed over the table of changes. A turn reads what came since the last one, on a connection of its own: twice a
 * second, when a notification wakes it, and after each own commit.
 */
import pg, { type Client } from 'pg'
import { inTime } from '../../clock.ts'
import { Channel, type Feeds } from '../feed.ts'
import { run } from '../operations.ts'
import type { AgentRecord, PolicyRecord } from '../store.ts'
import { StoreError } from '../store-error.ts'
import { type Connections, configOf, watchClient } from './connection.ts'
import type { PostgresSettings } from './settings.ts'

/** Time between two turns, milliseconds. */
const turnMs = 500
/** Longest time that a turn takes, milliseconds; then its connection is dropped. */
const turnLimitMs = 3_000
/** Changes read at a time. */
const mostAtOnce = 500
/** Latest changes whose followers may still be waited for. */
const mostKept = 1_000
/** How long changes are kept for other gateways, milliseconds, and turns between removals of old ones. */
const keptMs = 3_600_000
const turnsToPrune = 120

interface ListeningClient extends Client {
  ref(): void
  unref(): void
}

interface Row {
  readonly seq: number
  readonly table: 'agents' | 'policies'
  readonly key: string
  readonly payload: string | null
}

/** A change that the followers were told of. In an object: a promise is not waited for by passing it on. */
interface Passed {
  readonly inForce: Promise<unknown> | undefined
}

interface Turn {
  /** Number of the last change; 0 when there is none. */
  readonly newest: number
  readonly list: readonly Row[]
}

export interface PostgresFeedsOptions {
  readonly settings: PostgresSettings
  readonly connections: Connections
  /** Called when changes cannot be read; it is tried on. */
  readonly onStale: (error: unknown) => void
}

export class PostgresFeeds implements Feeds {
  readonly agents: Channel<AgentRecord>
  readonly policies: Channel<PolicyRecord>
  readonly #options: PostgresFeedsOptions
  #client: ListeningClient | undefined
  /** Every change up to this number was passed on. */
  #applied = -1
  readonly #inForce = new Map<number, Promise<unknown> | undefined>()
  readonly #waiting = new Map<number, (passed: Passed) => void>()
  /** Turns and loads, one at a time. */
  #line: Promise<unknown> = Promise.resolve()
  #turnWaits = false
  #failing = false
  #timer: NodeJS.Timeout | undefined
  #turns = 0
  #closed = false

  constructor(options: PostgresFeedsOptions) {
    this.#options = options
    this.agents = new Channel(seen => this.#inLine(() => this.#readAll('agents', seen)))
    this.policies = new Channel(seen => this.#inLine(() => this.#readAll('policies', seen)))
  }

  /** @throws what kept the first turn from being done */
  async start(): Promise<void> {
    await this.#inLine(() => this.#turn())
    this.#timer = setInterval(() => this.#turnSoon(), turnMs).unref()
  }

  /**
   * Resolves when this change is in force, however long a follower takes.
   * @throws StoreError when it was not read within `limitMs`
   */
  async until(seq: number, limitMs: number): Promise<void> {
    const passed = seq <= this.#applied ? { inForce: this.#inForce.get(seq) } : await this.#passed(seq, limitMs)
    await passed.inForce
  }

  #passed(seq: number, limitMs: number): Promise<Passed> {
    const passed = new Promise<Passed>(resolve => this.#waiting.set(seq, resolve))
    this.#turnSoon()
    return inTime(passed, limitMs, () => {
      this.#waiting.delete(seq)
      throw new StoreError('The change was recorded, and is not in force yet', { inDoubt: true })
    })
  }

  /** Wakes all gateways. Nothing is lost when it does not reach them. */
  wake(): void {
    const woken = this.#client?.query(`notify ${channelOf(this.#options.settings)}`)
    woken?.catch(() => {})
  }

  async close(): Promise<void> {
    this.#closed = true
    clearInterval(this.#timer)
    await this.#line
    await this.#client?.end().catch(() => {})
  }

  #inLine<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#line.then(work)
    this.#line = result.catch(() => {})
    return result
  }

  #turnSoon(): void {
    if (this.#turnWaits || this.#closed) return
    this.#turnWaits = true
    this.#inLine(() => {
      this.#turnWaits = false
      return this.#turn()
    }).then(
      () => {
        this.#failing = false
      },
      error => {
        if (!this.#failing && !this.#closed) this.#options.onStale(error)
        this.#failing = true
      },
    )
  }

  async #turn(): Promise<void> {
    if (this.#closed) return
    const client = this.#client ?? (await this.#connect())
    client.ref()
    try {
      await inTime(this.#readOn(client), turnLimitMs, () => Promise.reject(new StoreError('A turn took too long')))
    } catch (error) {
      this.#client = undefined
      void client.end().catch(() => {})
      throw error
    } finally {
      // An idle store does not keep the process running.
      client.unref()
    }
  }

  async #connect(): Promise<ListeningClient> {
    // The types lack the methods.
    const client = new pg.Client(configOf(this.#options.settings)) as ListeningClient
    watchClient(client)
    client.on('notification', () => this.#turnSoon())
    client.once('end', () => {
      if (this.#client === client) this.#client = undefined
    })
    await client.connect()
    await client.query(`listen ${channelOf(this.#options.settings)}`)
    this.#client = client
    return client
  }

  async #readOn(client: Client): Promise<void> {
    for (let more = true; more; ) {
      const { rows } = await client.query<Turn>(turnQuery, [this.#applied])
      const { newest, list } = rows[0] ?? { newest: 0, list: [] }
      if (this.#applied < 0) this.#applied = newest
      else if (newest < this.#applied || (list[0]?.seq ?? 0) > this.#applied + 1) this.#reload(newest)
      else for (const row of list) this.#apply(row)
      more = this.#applied < newest
    }
    await this.#prune(client)
  }

  #apply({ seq, table, key, payload }: Row): void {
    // Written by `commit_write` from such a record.
    const now = payload === null ? undefined : JSON.parse(payload)
    const inForce = table === 'agents' ? this.agents.publish(key, now, seq) : this.policies.publish(key, now, seq)
    this.#pass(seq, inForce)
  }

  #pass(seq: number, inForce: Promise<unknown> | undefined): void {
    this.#applied = seq
    this.#inForce.set(seq, inForce)
    if (this.#inForce.size > mostKept) this.#inForce.delete(seq - mostKept)
    this.#waiting.get(seq)?.({ inForce })
    this.#waiting.delete(seq)
  }

  /** Changes were removed that this gateway has not seen, or the database is an older one than before. */
  #reload(newest: number): void {
    const agents = this.agents.reload()
    const policies = this.policies.reload()
    this.#applied = newest
    const inForce = Promise.all([agents, policies])
    inForce.catch(() => this.#turnSoon())
    for (const [seq, resolve] of this.#waiting) if (seq <= newest) resolve({ inForce })
  }

  async #readAll<T>(table: 'agents' | 'policies', seen: (all: readonly T[], seq?: number) => void): Promise<void> {
    const client = await this.#options.connections.acquire()
    let broken = true
    try {
      const { connections } = this.#options
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

  async #prune(client: Client): Promise<void> {
    if (this.#turns++ % turnsToPrune !== 0) return
    await client.query(`delete from changes where at < ${nowMs} - ${keptMs} and seq < (select max(seq) from changes)`)
    await client.query(`delete from writes where at < ${nowMs} - ${keptMs}`)
  }
}

const nowMs = 'floor(extract(epoch from clock_timestamp()) * 1000)::bigint'

const turnQuery = `select coalesce((select max(seq) from changes), 0) as newest,
  (select coalesce(json_agg(c), '[]') from (select * from changes where seq > $1 order by seq limit ${mostAtOnce}) c) as list`

/** The name of a channel is an identifier. */
const channelOf = ({ schema }: PostgresSettings): string => `"agent_gateway.${schema}"`
