/** Clients of the database, and a Kysely for each. */
import { hash } from 'node:crypto'
import { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { type DatabaseIntrospector, Kysely, PostgresDialect, sql } from 'kysely'
import pg, { type Client, type ClientConfig, type Pool, type PoolClient, type QueryResult } from 'pg'
import { inTime } from '../../runtime/clock.ts'
import { bindable } from '../chain.ts'
import type { Db, Schema } from '../schema.ts'
import { sendBy } from '../statement.ts'
import type { CallerKind } from '../store.ts'
import { StoreError } from '../store-error.ts'
import { type DatabaseAddress, type PostgresSettings, parseAddress, timeoutOf } from './settings.ts'

/** Longest wait for a connection, as a share of Storage:PostgreSQL:TimeoutSeconds. */
const connectShare = 0.7
/** Calls that may wait for a connection, and how many of them agents may cause. */
const maxWaiting = { people: 256, agents: 192 }
/** Different statements that are kept prepared in a connection. */
const maxPrepared = 300

/**
 * Limits that the server keeps, milliseconds: a gateway that was stopped in a transaction holds its locks no longer, and
 * what nobody waits for any more ends.
 */
export const serverLimits = (timeoutMs: number) => ({
  idle_in_transaction_session_timeout: 1_000,
  lock_timeout: timeoutMs * 0.6,
  statement_timeout: timeoutMs * 2.5,
  client_connection_check_interval: 1_000,
})

/** 64-bit integers as numbers: times, counts and sequences stay below 2^53. */
const int8 = 20
const bytea = 17
const bytesOf = ({ buffer, byteOffset, length }: Buffer) => new Uint8Array(buffer, byteOffset, length)
const parsers = new Map<number, (text: string) => unknown>([
  [int8, Number],
  [bytea, text => bytesOf(Buffer.from(text.slice(2), 'hex'))],
])
const types: ClientConfig['types'] = {
  // Of its overloads only the one for texts is used: results in binary are not asked for.
  getTypeParser: ((oid: number) => parsers.get(oid) ?? pg.types.getTypeParser(oid)) as typeof pg.types.getTypeParser,
}

/** Each statement reads few rows: plans for several processes are for many, and look cheaper than they are. */
const planAlone = '-c max_parallel_workers_per_gather=0'

export function configOf(settings: PostgresSettings, address: DatabaseAddress = parseAddress(settings)): ClientConfig {
  const timeoutMs = timeoutOf(settings)
  const limits = Object.entries(serverLimits(timeoutMs)).map(([name, ms]) => `-c ${name}=${ms}`)
  // A pooler in transaction mode keeps no settings of a session: there they are settings of the role (session.ts).
  const isPooled = settings.listenConnectionString !== undefined
  return {
    ...address,
    types,
    connectionTimeoutMillis: timeoutMs * connectShare,
    ...(isPooled ? {} : { options: [`-c search_path=${settings.schema}`, planAlone, ...limits].join(' ') }),
    application_name: `agent-gateway/${settings.schema}`,
    // COMMIT goes out together with the statement before it.
    pipeline: true,
    stream: createSocket,
  }
}

/**
 * A socket like those to upstreams: the same properties, set in the same order (upstream/dial.ts). V8 then compiles the
 * streams of Node for one kind of socket less, which saves each proxied request 3 % of its time.
 */
export function createSocket(): Socket {
  const socket = new Socket()
  socket.once('connect', () => {
    socket.setKeepAlive(true)
    // The first look notes the address in the socket.
    void socket.remoteAddress
  })
  return socket
}

/** Notices that came while nothing but a COMMIT was under way: a standby that did not confirm, for instance. */
const noticed = new WeakMap<object, string>()

/** A client whose faults end it, and not the process. */
export function watchClient(client: Client | PoolClient): void {
  // The query that was under way rejects; the pool drops the client.
  client.on('error', () => {})
  client.on('notice', ({ message = 'a notice' }) => noticed.set(client, message))
}

const held = new WeakSet<Duplex>()

function streamOf(client: Client | PoolClient): Duplex {
  // The types lack the connection.
  return (client as unknown as { readonly connection: { readonly stream: Duplex } }).connection.stream
}

/** Longest wait until the server has closed connections, milliseconds. */
const endMs = 1_000

/** Ends a connection, also when the server does not answer. */
export function endClient(client: Client): Promise<void> {
  const end = client.end().catch(() => {})
  return inTime(end, endMs, () => cutOff(client))
}

/**
 * Ends a connection at once: its answers are not wanted any more, and may never come. `end` would wait for those of all
 * statements under way, because they are pipelined.
 */
export function cutOff(client: Client | PoolClient): void {
  streamOf(client).destroy()
}

/** What is sent in one turn of the event loop leaves in one write. */
function holdTogether(client: PoolClient): void {
  const stream = streamOf(client)
  if (held.has(stream)) return
  held.add(stream)
  stream.cork()
  setImmediate(() => {
    held.delete(stream)
    stream.uncork()
  })
}

/** The last notice since this was asked. */
export function takeNotice(client: object): string | undefined {
  const notice = noticed.get(client)
  noticed.delete(client)
  return notice
}

interface TimedStatement {
  readonly text: string
  readonly values: readonly unknown[]
  /** Longest time from the moment that a client is there, milliseconds. */
  readonly limitMs: number
  readonly of?: CallerKind
}

export interface ConnectionCounts {
  readonly busy: number
  readonly idle: number
  readonly waiting: number
}

export class DatabaseConnections {
  readonly #pool: Pool
  readonly #kyselys = new WeakMap<PoolClient, Db>()
  readonly #names = new Map<string, string>()
  /** Behind a pooler a statement may come to a server connection that has not prepared it. */
  readonly #prepares: boolean
  readonly #open = new Set<PoolClient>()

  constructor(settings: PostgresSettings) {
    this.#prepares = settings.listenConnectionString === undefined
    this.#pool = new pg.Pool({ ...configOf(settings), max: settings.poolSize, allowExitOnIdle: true })
    this.#pool.on('connect', client => {
      watchClient(client)
      this.#open.add(client)
      streamOf(client).once('close', () => this.#open.delete(client))
    })
    this.#pool.on('error', () => {})
  }

  /** @throws StoreError when too many wait, or none becomes free in time */
  async acquire(of: CallerKind = 'people'): Promise<PoolClient> {
    if (this.#pool.waitingCount >= maxWaiting[of]) throw new StoreError('Too many calls wait for the storage')
    return this.#pool.connect()
  }

  /** Does work with a client of its own. One that the work fails with is ended: a statement may be under way. */
  async use<T>(work: (client: PoolClient) => Promise<T>, of?: CallerKind): Promise<T> {
    const client = await this.acquire(of)
    let broken = true
    try {
      const value = await work(client)
      broken = false
      return value
    } finally {
      this.giveBack(client, broken)
    }
  }

  /** @param broken whether it must not be used again */
  giveBack(client: PoolClient, broken: boolean): void {
    if (broken) cutOff(client)
    client.release(broken)
  }

  /** The tables through one client. */
  over(client: PoolClient): Db {
    const known = this.#kyselys.get(client)
    if (known !== undefined) return known
    const query = (text: string, values: readonly unknown[]) => this.query(client, text, values)
    const pool = { connect: async () => ({ query, release() {} }), end: async () => {} }
    // Kysely calls `query` with text and values alone: it is given no cursor, and cancels nothing.
    const db = new Kysely<Schema>({ dialect: new OwnSchemaDialect({ pool: pool as never }) })
    sendBy(db, async (text, values) => {
      const { command, rowCount, rows } = await this.query(client, text, values)
      return command === 'SELECT' ? { rows } : { rows, numAffectedRows: BigInt(rowCount ?? 0) }
    })
    this.#kyselys.set(client, db)
    return db
  }

  /** Runs a statement; one with values is prepared once for each client. */
  query(client: PoolClient, text: string, values: readonly unknown[] = []): Promise<QueryResult> {
    holdTogether(client)
    // Nothing to prepare: BEGIN and COMMIT above all.
    if (values.length === 0) return client.query(text)
    const name = this.#names.get(text) ?? this.#nameOf(text)
    return client.query({ text, values: values.map(bindable), ...(name === undefined ? {} : { name }) })
  }

  /** Connections by what they do, and calls that wait for one. */
  get counts(): ConnectionCounts {
    const { totalCount, idleCount: idle, waitingCount: waiting } = this.#pool
    return { busy: totalCount - idle, idle, waiting }
  }

  /** Runs one statement with a client of its own. @throws StoreError after `limitMs`: its client is ended then */
  queryInTime({ text, values, limitMs, of }: TimedStatement): Promise<QueryResult> {
    const late = () => Promise.reject(new StoreError('it took too long'))
    return this.use(client => inTime(this.query(client, text, values), limitMs, late), of)
  }

  #nameOf(text: string): string | undefined {
    if (!this.#prepares || this.#names.size >= maxPrepared) return undefined
    const name = hash('sha256', text).slice(0, 32)
    this.#names.set(text, name)
    return name
  }

  close(): Promise<void> {
    return inTime(this.#pool.end(), endMs, () => {
      for (const client of this.#open) cutOff(client)
    })
  }
}

/**
 * Migrations look at the schema of this gateway alone. Kysely's own look is at all schemas of the database: it fails when
 * another one is dropped meanwhile.
 */
class OwnSchemaDialect extends PostgresDialect {
  override createIntrospector(db: Kysely<unknown>): DatabaseIntrospector {
    return {
      async getSchemas() {
        const { rows } = await sql<{ name: string }>`
          select nspname as name from pg_namespace where nspname = current_schema()`.execute(db)
        return rows
      },
      async getTables() {
        const { rows } = await sql<{ schema: string; name: string }>`
          select nspname as schema, relname as name from pg_class join pg_namespace on pg_namespace.oid = relnamespace
          where nspname = current_schema() and relkind in ('r', 'p')`.execute(db)
        return rows.map(table => ({ ...table, isView: false, isForeign: false, columns: [] }))
      },
    }
  }
}
