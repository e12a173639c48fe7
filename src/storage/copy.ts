/** Copies all that a gateway keeps from one engine to another, a few rows at a time, and reads it back. */
import { createHash, hash } from 'node:crypto'
import { type RawBuilder, sql } from 'kysely'
import { StartupError } from '../base/refusals.ts'
import type { Db, Schema } from './schema.ts'
import type { AuditTable } from './store.ts'
import { audit } from './tables/audit.ts'

/**
 * Codes of the console and consents are over in minutes, and leases of webhooks are held by gateways that do not run on the copy. Its
 * trail is verified from the beginning.
 */
export type CopiedTable = Exclude<keyof Schema, 'probe' | 'console_codes' | 'consents' | 'hooks' | 'audit_pass'>

/** The primary keys. Tables come after those that they refer to. */
const keys: { readonly [T in CopiedTable]: readonly (keyof Schema[T] & string)[] } = {
  agents: ['id'],
  agent_keys: ['id'],
  identities: ['provider', 'team', 'user'],
  policies: ['name'],
  hitl: ['id'],
  hitl_shown: ['id'],
  hitl_sealed: ['id'],
  hitl_totals: ['agentId'],
  messages: ['channel', 'reference'],
  push_key: ['one'],
  push_browsers: ['id'],
  grants: ['id'],
  granted_keys: ['agentId', 'key'],
  seen_tools: ['agentId', 'server'],
  agent_shapes: ['agentId', 'digest'],
  shape_gaps: ['agentId'],
  agent_samples: ['id'],
  rule_hits: ['policy', 'rule', 'version', 'day'],
  spend: ['budget', 'from', 'holder'],
  spend_leases: ['budget', 'from', 'holder', 'gateway'],
  spend_raises: ['id'],
  credentials: ['name', 'subject'],
  token_epoch: ['epoch'],
  deliveries: ['id'],
  audit: ['seq'],
}

// They are the keys of the object above.
export const copiedTables = Object.keys(keys) as readonly CopiedTable[]

/** Rows that are in memory at a time. Those with bodies can have ten megabytes each. */
const maxRows = 200
const maxBodies = 1
const withBodies: readonly string[] = ['hitl_shown', 'hitl_sealed', 'agent_samples'] satisfies CopiedTable[]

type Value = string | number | Uint8Array | null
type CopiedRow = Readonly<Record<string, Value>>

export interface Copied {
  readonly table: CopiedTable
  readonly rows: number
}

/** What a copy reads and writes. Nobody else changes either meanwhile. */
export interface CopyEnds {
  readonly from: Db
  /** Empty, and in a transaction. */
  readonly to: Db
  /** Called before each batch; throws to end the copy. */
  readonly proceed: () => void
}

/**
 * Copies every table, then reads it at the target.
 * @throws StartupError when a table does not read back as it was; the transaction must then be rolled back
 */
export async function copyTables({ from, to, proceed }: CopyEnds): Promise<readonly Copied[]> {
  const copied: Copied[] = []
  for (const table of copiedTables) {
    const read = new Digest()
    for await (const rows of batchesOf(from, table)) {
      proceed()
      await insertRows(to, table, rows)
      read.add(rows)
    }
    const written = new Digest()
    for await (const rows of batchesOf(to, table)) {
      proceed()
      written.add(rows)
    }
    if (read.end() !== written.end()) {
      throw new StartupError(`The table ${table} does not read back as it was written. Nothing was copied.`)
    }
    copied.push({ table, rows: read.rows })
  }
  return copied
}

/** The tables that have rows, for people; empty when there are none. */
export async function describeRows(db: Db): Promise<string> {
  const found: string[] = []
  for (const table of copiedTables) {
    const counted = await sql<{ rows: number }>`select count(*) as rows from ${sql.table(table)}`.execute(db)
    const rows = Number(counted.rows[0]?.rows)
    if (rows > 0) found.push(`${table} ${rows}`)
  }
  return found.join(', ')
}

/** The audit trail, to be verified. */
export function trailOf(db: Db): Pick<AuditTable, 'after'> {
  return { after: (seq, limit) => audit.after(db, seq, limit) }
}

async function* batchesOf(db: Db, table: CopiedTable): AsyncGenerator<readonly CopiedRow[], void, void> {
  const key = sql.join(keys[table].map(column => sql.ref(column)))
  const limit = withBodies.includes(table) ? maxBodies : maxRows
  let after: RawBuilder<unknown> = sql``
  for (;;) {
    const { rows } =
      await sql<CopiedRow>`select * from ${sql.table(table)} ${after} order by ${key} limit ${limit}`.execute(db)
    const last = rows.at(-1)
    if (last === undefined) return
    yield rows
    after = sql`where (${key}) > (${sql.join(keys[table].map(column => last[column]))})`
  }
}

async function insertRows(db: Db, table: CopiedTable, rows: readonly CopiedRow[]): Promise<void> {
  const columns = Object.keys(rows[0] ?? {})
  const names = sql.join(columns.map(column => sql.ref(column)))
  const values = rows.map(row => sql`(${sql.join(columns.map(column => row[column]))})`)
  await sql`insert into ${sql.table(table)} (${names}) values ${sql.join(values)}`.execute(db)
}

/** SHA-256 over rows in their order, whatever the order of their columns. */
class Digest {
  readonly #hash = createHash('sha256')
  rows = 0

  add(rows: readonly CopiedRow[]): void {
    this.rows += rows.length
    for (const row of rows) {
      const columns = Object.keys(row).sort()
      this.#hash.update(`${JSON.stringify(columns.map(column => [column, toText(row[column])]))}\n`)
    }
  }

  end(): string {
    return this.#hash.digest('hex')
  }
}

const toText = (value: Value | undefined) =>
  value instanceof Uint8Array ? { bytes: hash('sha256', value, 'hex') } : value
