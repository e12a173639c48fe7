/**
 * The schema as a list of steps that only grows: a step that was released is never changed.
 */
import { type RawBuilder, sql } from 'kysely'
import { type Migration, Migrator } from 'kysely/migration'
import type { Db } from './schema.ts'

/** How an engine writes what differs between engines. */
export interface EngineTypes {
  /** The type of a column of bytes. */
  readonly bytes: 'blob' | 'bytea'
}

/** The steps by name, oldest first. */
export function createMigrations(types: EngineTypes): Record<string, Migration> {
  const bytes = sql.raw(types.bytes)
  return {
    '0001-tables': {
      async up(db) {
        for (const statement of [...registry, ...queue(bytes), ...grants, ...trail(bytes)]) await statement.execute(db)
      },
    },
  }
}

/**
 * Brings the schema up to date. Call it inside a transaction: then a crash leaves either the old schema or the new.
 * @throws what the failed step threw
 */
export async function migrate(db: Db, migrations: Record<string, Migration>): Promise<void> {
  const migrator = new Migrator({ db, provider: { getMigrations: async () => migrations } })
  const { error } = await migrator.migrateToLatest()
  if (error !== undefined) throw error
}

/** The first step in the database that `migrations` does not know: another version made it. */
export async function unknownStep(db: Db, migrations: Record<string, Migration>): Promise<string | undefined> {
  const { rows } = await sql<{ name: string }>`select name from kysely_migration order by name`.execute(db)
  return rows.find(row => !(row.name in migrations))?.name
}

const registry = [
  sql`create table agents (
    id text primary key,
    name text not null,
    owner_id text not null,
    status text not null,
    policy_name text,
    roles text not null,
    external_subject text,
    tags text not null,
    trust_value double precision not null,
    trust_at bigint not null,
    created_at bigint not null,
    secret_hash text not null,
    weak_secret integer not null
  )`,
  sql`create table policies (
    name text primary key,
    document text not null,
    created_at bigint not null,
    updated_at bigint not null
  )`,
]

/** The long columns come last in `hitl`: SQLite then reads a list without walking through them. */
const queue = (bytes: RawBuilder<unknown>) => [
  sql`create table hitl (
    id text primary key,
    agent_id text not null,
    owner_id text not null,
    method text not null,
    host text not null,
    reason text not null,
    policy_name text,
    policy_version text,
    rule text,
    approvals_needed integer not null,
    digest text not null,
    idempotency_key text,
    repeat_digest text,
    created_at bigint not null,
    expires_at bigint not null,
    status text not null,
    replay text,
    replay_before text,
    attempt integer not null,
    lease_until bigint,
    approved_by text not null,
    decided_by text,
    decided_at bigint,
    comment text,
    response_status integer,
    body_bytes bigint not null,
    body_encoding text not null,
    url text not null,
    decision text not null,
    summary text not null,
    unique (agent_id, idempotency_key)
  )`,
  sql`create index hitl_status on hitl (status, expires_at, agent_id)`,
  sql`create index hitl_order on hitl (status, created_at, id)`,
  sql`create index hitl_joins on hitl (agent_id, repeat_digest)`,
  sql`create index hitl_decided_at on hitl (decided_at)`,
  sql`create index hitl_replay on hitl (replay, lease_until)`,
  sql`create table hitl_shown (
    id text primary key references hitl (id) on delete cascade,
    headers text not null,
    body text not null
  )`,
  sql`create table hitl_sealed (
    id text primary key references hitl (id) on delete cascade,
    request ${bytes},
    response ${bytes}
  )`,
  sql`create table hitl_waiting (
    agent_id text primary key,
    waiting integer not null
  )`,
]

const grants = [
  sql`create table grants (
    id text primary key,
    agent_id text not null,
    policy_name text not null,
    rule text not null,
    method text not null,
    origin text not null,
    path text not null,
    max_uses integer not null,
    uses integer not null,
    hitl_id text not null,
    granted_by text not null,
    created_at bigint not null,
    expires_at bigint not null
  )`,
  sql`create index grants_agent on grants (agent_id, expires_at)`,
  sql`create table granted_keys (
    agent_id text not null,
    idempotency_key text not null,
    expires_at bigint not null,
    primary key (agent_id, idempotency_key)
  )`,
  sql`create index granted_keys_expiry on granted_keys (expires_at)`,
]

const trail = (bytes: RawBuilder<unknown>) => [
  sql`create table audit (
    seq integer primary key,
    at bigint not null,
    actor text not null,
    action text not null,
    subject text not null,
    request_id text,
    details text not null,
    previous text not null,
    hash text not null
  )`,
  sql`create index audit_subject on audit (subject)`,
  sql`create index audit_actor on audit (actor)`,
  sql`create table probe (payload ${bytes} not null)`,
]
