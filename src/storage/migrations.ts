/**
 * The schema as a list of steps that only grows: a step that was released is never changed.
 */
import { type RawBuilder, sql } from 'kysely'
import { type Migration, Migrator, type MigratorProps } from 'kysely/migration'
import { chats } from './migrations-chats.ts'
import { storedCredentials } from './migrations-credentials.ts'
import type { Db } from './schema.ts'
import { shapeTables } from './shape-tables.ts'

/** How an engine writes what differs between engines. */
export interface EngineTypes {
  /** The type of a column of bytes. */
  readonly bytes: 'blob' | 'bytea'
  /** The type of a number that counts rows for ever. As the key of a table, `integer` is the rowid in SQLite. */
  readonly count: 'integer' | 'bigint'
}

/** The steps by name, oldest first. */
export function createMigrations(types: EngineTypes): Record<string, Migration> {
  const bytes = sql.raw(types.bytes)
  const count = sql.raw(types.count)
  const tables = [
    ...registry,
    ...shapeTables(bytes),
    ...spend,
    ...queue(bytes),
    ...queueIndexes,
    ...grants,
    ...webhooks(count),
    ...chats(bytes),
    ...trail(bytes, count),
    ...storedCredentials(bytes),
    ...others(bytes),
  ]
  return {
    '0001-schema': {
      async up(db) {
        for (const statement of tables) await statement.execute(db)
      },
    },
  }
}

/**
 * Brings the schema up to date. Call it inside a transaction: then a crash leaves either the old schema or the new.
 *
 * @param names of the tables that keep the steps and the lock, and the schema where they are, if not the usual ones
 * @throws what the failed step threw
 */
export async function migrate(
  db: Db,
  migrations: Record<string, Migration>,
  names: Pick<MigratorProps, 'migrationTableName' | 'migrationLockTableName' | 'migrationTableSchema'> = {},
): Promise<void> {
  const provider = { getMigrations: async () => migrations }
  const migrator = new Migrator({ db, provider, disableTransactions: true, ...names })
  const { error } = await migrator.migrateToLatest()
  if (error !== undefined) throw error
}

const registry = [
  sql`create table agents (
    id text primary key,
    name text not null,
    "ownerId" text not null,
    status text not null,
    "policyName" text,
    roles text not null,
    "externalSubject" text,
    tags text not null,
    "trustValue" double precision not null,
    "trustAt" bigint not null,
    standing text,
    "createdAt" bigint not null,
    "secretHash" text not null,
    "weakSecret" integer not null,
    recording text
  )`,
  sql`create unique index agents_subject on agents ("externalSubject")`,
  sql`create table agent_keys (
    id text primary key,
    "agentId" text not null references agents (id) on delete cascade,
    name text not null,
    hash text not null unique,
    "createdAt" bigint not null,
    "expiresAt" bigint,
    "lastUsedAt" bigint
  )`,
  sql`create index agent_keys_agent on agent_keys ("agentId", "createdAt")`,
  sql`create table policies (
    name text primary key,
    document text not null,
    "createdAt" bigint not null,
    "updatedAt" bigint not null
  )`,
  sql`create table seen_tools (
    "agentId" text not null,
    server text not null,
    digests text not null,
    at bigint not null,
    primary key ("agentId", server)
  )`,
]

/** Amounts are whole numbers: calls, tokens, or money in billionths. */
const spend = [
  sql`create table spend (
    budget text not null,
    holder text not null,
    "from" bigint not null,
    until bigint not null,
    spent bigint not null,
    estimated bigint not null,
    calls bigint not null,
    raised bigint not null,
    notified integer not null default 0,
    primary key (budget, "from", holder)
  )`,
  sql`create index spend_until on spend (until)`,
  sql`create table spend_leases (
    budget text not null,
    holder text not null,
    "from" bigint not null,
    gateway text not null,
    until bigint not null,
    leased bigint not null,
    spent bigint not null,
    estimated bigint not null,
    calls bigint not null,
    primary key (budget, "from", holder, gateway)
  )`,
  sql`create index spend_leases_until on spend_leases (until)`,
  sql`create table spend_raises (
    id text primary key,
    budget text not null,
    holder text not null,
    "from" bigint not null,
    until bigint not null,
    amount bigint not null
  )`,
  sql`create index spend_raises_until on spend_raises (until)`,
]

/** The long columns come last in `hitl`: SQLite then reads a list without walking through them. */
const queue = (bytes: RawBuilder<unknown>) => [
  sql`create table hitl (
    id text primary key,
    "agentId" text not null,
    "ownerId" text not null,
    method text not null,
    host text not null,
    reason text not null,
    "policyName" text,
    "policyVersion" text,
    rule text,
    "approvalsNeeded" integer not null,
    digest text not null,
    "idempotencyKey" text,
    "repeatDigest" text,
    "createdAt" bigint not null,
    "expiresAt" bigint not null,
    status text not null,
    replay text,
    "replayBefore" text,
    attempt integer not null,
    "leaseUntil" bigint,
    owner text,
    "approvedBy" text not null,
    "decidedBy" text,
    "decidedAt" bigint,
    comment text,
    "responseStatus" integer,
    calls text,
    bytes bigint not null,
    "bodyBytes" bigint not null,
    "bodyEncoding" text not null,
    url text not null,
    decision text not null,
    summary text not null,
    unique ("agentId", "idempotencyKey")
  )`,
  sql`create table hitl_shown (
    id text primary key references hitl (id) on delete cascade,
    headers text not null,
    body text not null,
    places text not null
  )`,
  sql`create table hitl_sealed (
    id text primary key references hitl (id) on delete cascade,
    request ${bytes},
    response ${bytes}
  )`,
  sql`create table hitl_totals (
    "agentId" text primary key,
    waiting integer not null,
    bytes bigint not null
  )`,
]

/** So that no sweep and no page reads more rows when there are more of them. */
const queueIndexes = [
  sql`create index hitl_status on hitl (status, "expiresAt", "agentId")`,
  sql`create index hitl_order on hitl (status, "createdAt", id)`,
  sql`create index hitl_joins on hitl ("agentId", "repeatDigest")`,
  sql`create index hitl_replay on hitl (replay, "leaseUntil")`,
  sql`create index hitl_past on hitl ("decidedAt", id) where "decidedAt" is not null`,
  sql`create index hitl_past_agent on hitl ("agentId", "decidedAt", id) where "decidedAt" is not null`,
  sql`create index hitl_past_status on hitl (status, "decidedAt", id) where "decidedAt" is not null`,
  sql`create index hitl_past_replay on hitl (replay, "decidedAt", id) where replay in ('failed', 'unknown')`,
]

const grants = [
  sql`create table grants (
    id text primary key,
    "agentId" text not null,
    "policyName" text not null,
    rule text not null,
    method text not null,
    origin text not null,
    path text not null,
    credentials text not null,
    "maxUses" integer not null,
    uses integer not null,
    "hitlId" text not null,
    "grantedBy" text not null,
    "createdAt" bigint not null,
    "expiresAt" bigint not null
  )`,
  sql`create index grants_agent on grants ("agentId", "expiresAt")`,
  sql`create index grants_expiry on grants ("expiresAt")`,
  sql`create index grants_used on grants (uses) where uses >= "maxUses"`,
  sql`create index grants_order on grants ("createdAt", id)`,
  sql`create table granted_keys (
    "agentId" text not null,
    key text not null,
    "expiresAt" bigint not null,
    primary key ("agentId", key)
  )`,
  sql`create index granted_keys_expiry on granted_keys ("expiresAt")`,
]

/** Messages that were not sent yet, and who sends those of a hook. */
const webhooks = (count: RawBuilder<unknown>) => [
  sql`create table deliveries (
    id ${count} primary key,
    hook text not null,
    event text not null,
    at bigint not null,
    payload text not null,
    "agentId" text not null
  )`,
  // It has all that the shares of agents are counted by.
  sql`create index deliveries_hook on deliveries (hook, id, "agentId")`,
  sql`create index deliveries_at on deliveries (at)`,
  sql`create table hooks (
    hook text primary key,
    owner text not null,
    "leaseUntil" bigint not null
  )`,
]

const trail = (bytes: RawBuilder<unknown>, count: RawBuilder<unknown>) => [
  sql`create table audit (
    seq ${count} primary key,
    at bigint not null,
    actor text not null,
    action text not null,
    subject text not null,
    "requestId" text,
    details text not null,
    previous text not null,
    hash text not null
  )`,
  sql`create index audit_time on audit (at, seq)`,
  sql`create index audit_subject on audit (subject, at, seq)`,
  sql`create index audit_actor on audit (actor, at, seq)`,
  sql`create index audit_action on audit (action, at, seq)`,
  sql`create table audit_pass (one integer primary key, note ${bytes} not null)`,
]

const others = (bytes: RawBuilder<unknown>) => [
  sql`create table console_codes (
    hash text primary key,
    "agentId" text not null,
    "expiresAt" bigint not null
  )`,
  sql`create table token_epoch (epoch text primary key)`,
  sql`create table probe (payload ${bytes} not null)`,
]
