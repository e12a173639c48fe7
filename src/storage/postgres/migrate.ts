/** Gets the database ready at the start: whether it can be used, and its schema. */
import { sql } from 'kysely'
import type { PoolClient } from 'pg'
import { asError } from '../../base/as-error.ts'
import { StartupError } from '../../base/refusals.ts'
import { ownVersion } from '../../runtime/version.ts'
import type { DatabaseConnections } from './connection.ts'
import { assertSession } from './session.ts'
import { type PostgresSettings, parseAddress } from './settings.ts'
import { missingSteps, runSteps, type Steps, stepsOf } from './steps.ts'

/** Oldest version of PostgreSQL. */
const oldest = 15
/** One gateway at a time, in any schema of the database. */
const migrationLock = 1_095_190_358
/** Longest time for all steps, milliseconds. */
const migrationMs = 60_000

/** Sorts text as SQLite does, whatever the database was made with. */
const sortByBytes = sql`do $$
declare place record;
begin
  for place in select table_name, column_name from information_schema.columns
    where table_schema = current_schema() and data_type = 'text' and collation_name is distinct from 'C'
      and table_name not like '%migration%'
  loop
    execute format('alter table %I alter column %I type text collate "C"', place.table_name, place.column_name);
  end loop;
end $$`

/** What else is done in the transaction that prepares the schema. */
type Fill = (client: PoolClient) => Promise<void>

export interface Preparation {
  readonly connections: DatabaseConnections
  readonly settings: PostgresSettings
  /** Of this gateway. */
  readonly version?: string
  /** Those of this version when absent. */
  readonly steps?: Steps
  /** Why a schema must not be created now; absent when it may. */
  readonly whyNotNew?: string | undefined
  readonly fill?: Fill
}

/**
 * Brings the schema up to date, or makes sure that it is. Returns the steps that were run.
 * @throws StartupError with one line that says what to change; nothing was created then
 */
export async function prepareDatabase(preparation: Preparation): Promise<readonly string[]> {
  const { connections, settings, fill = async () => {} } = preparation
  let done: readonly string[] = []
  await withClient(connections, settings, async client => {
    await assertServer(client)
    await assertSession(client, settings)
    await inTransaction(client, async () => {
      done = await migrateAll(client, preparation)
      await fill(client)
    })
  })
  return done
}

/**
 * Calls `work` with a client of its own, which ends then.
 * @throws StartupError with one line that says what to change
 */
export async function withClient<T>(
  connections: DatabaseConnections,
  settings: PostgresSettings,
  work: (client: PoolClient) => Promise<T>,
): Promise<T> {
  const client = await connections.acquire().catch(error => {
    throw new StartupError(connectProblem(error), { cause: error })
  })
  try {
    return await work(client)
  } catch (error) {
    throw error instanceof StartupError ? error : new StartupError(schemaProblem(error, settings), { cause: error })
  } finally {
    client.release(true)
  }
}

async function inTransaction(client: PoolClient, prepare: Fill): Promise<void> {
  try {
    await client.query(`begin; set local statement_timeout = ${migrationMs}; set local lock_timeout = ${migrationMs};
      set local idle_in_transaction_session_timeout = ${migrationMs}`)
    await client.query('select pg_advisory_xact_lock($1)', [migrationLock])
    await prepare(client)
    await client.query('commit')
  } catch (error) {
    await client.query('rollback').catch(() => {})
    throw error
  }
}

async function migrateAll(client: PoolClient, preparation: Preparation): Promise<readonly string[]> {
  const { connections, settings, version = ownVersion(), steps = stepsOf(settings.schema), whyNotNew } = preparation
  const { schema, migrate = 'Auto' } = settings
  const db = connections.over(client)
  const missing = await missingSteps(db, steps, version)
  if (missing.length === 0) return missing
  if (migrate === 'Check') {
    throw new StartupError(
      `The schema ${schema} lacks ${missing.join(', ')}. Run agent-gateway storage migrate, since Storage:PostgreSQL:Migrate is Check.`,
    )
  }
  // Not `if not exists` alone: that needs the right to create schemas, also when there is nothing to create.
  const { rowCount } = await client.query('select from pg_namespace where nspname = $1', [schema])
  if (rowCount === 0) {
    if (whyNotNew !== undefined) throw new StartupError(whyNotNew)
    await client.query(`create schema ${schema}`)
  }
  await runSteps(db, schema, steps, missing)
  await sortByBytes.execute(db)
  return missing
}

interface Server {
  readonly version: number
  readonly encoding: string
  readonly fsync: string
  readonly pages: string
  readonly commit: string
  readonly recovering: boolean
}

/** @throws StartupError when a gateway must not run on the server */
export async function assertServer(client: PoolClient): Promise<void> {
  const { rows } = await client.query<Server>(
    `select current_setting('server_version_num')::int / 10000 as version, current_setting('server_encoding') as encoding,
      current_setting('fsync') as fsync, current_setting('full_page_writes') as pages,
      current_setting('synchronous_commit') as commit, pg_is_in_recovery() as recovering`,
  )
  const problem = rows[0] && serverProblem(rows[0])
  if (problem !== undefined) throw new StartupError(problem)
}

/** Why a gateway must not run on a server; undefined when it may. */
export function serverProblem({ version, encoding, fsync, pages, commit, recovering }: Server): string | undefined {
  if (version < oldest) return `PostgreSQL ${version} is too old: version ${oldest} or later is needed.`
  if (recovering) return 'The server is a standby. Set Storage:PostgreSQL:ConnectionString to the primary.'
  if (encoding !== 'UTF8')
    return `The encoding of the database is ${encoding}. Create another: create database ... encoding 'UTF8' template template0.`
  if (fsync !== 'on') return 'fsync is off: what was confirmed would be lost in a crash. Set fsync = on.'
  if (pages !== 'on') return 'full_page_writes is off: a crash could damage the database. Set full_page_writes = on.'
  if (commit === 'off' || commit === 'local')
    return `synchronous_commit is ${commit}: what was confirmed could be lost. Set synchronous_commit = on.`
  return undefined
}

/** What to change, by the code of an error; no text of a driver that could hold a secret. */
const problems: Readonly<Record<string, string>> = {
  '28P01': 'the user or the password is wrong. Set Storage:PostgreSQL:ConnectionString.',
  '28000': 'the server does not let this user in. Look at pg_hba.conf and Storage:PostgreSQL:ConnectionString.',
  '3D000': 'the server has no such database. Create it, or set Storage:PostgreSQL:ConnectionString.',
  '53300': 'the server has no connection left. Raise max_connections or lower Storage:PostgreSQL:PoolSize.',
  '57P03': 'the server is starting up or shutting down. Try again when it accepts connections.',
  ECONNREFUSED: 'nothing listens there. Start the server, or set Storage:PostgreSQL:ConnectionString.',
  ENOENT: 'there is no such socket. Start the server, or set Storage:PostgreSQL:ConnectionString.',
  ENOTFOUND: 'its host name is not known. Set Storage:PostgreSQL:ConnectionString.',
  ERR_TLS_CERT_ALTNAME_INVALID:
    'its certificate is for another host name. Set one of its names in Storage:PostgreSQL:ConnectionString, or renew it with this name.',
  CERT_HAS_EXPIRED: 'its certificate has expired. Renew it.',
}
const untrusted = new Set([
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
])

/** What to change when no connection can be made. */
export function connectProblem(error: unknown): string {
  const { code = '', message } = asError(error)
  const problem = untrusted.has(code)
    ? 'its certificate is not trusted. Set Storage:PostgreSQL:CaFile.'
    : (problems[code] ?? (/does not support SSL/.test(message) ? 'it has no TLS. Set ssl = on there.' : undefined))
  return `The database cannot be reached: ${problem ?? `it does not answer (${code || 'no error code'}). Look at its log, the network and Storage:PostgreSQL:ConnectionString.`}`
}

function schemaProblem(error: unknown, settings: PostgresSettings): string {
  const { schema } = settings
  const { code, message } = asError(error)
  if (code !== '42501') return `The schema ${schema} cannot be used: ${message}`
  const { user, database } = parseAddress(settings)
  const [name, owned] = [user, database].map(quoted)
  return `The user ${user} may not create or change the schema ${schema}. If it is to own the schema, run: grant create on database ${owned} to ${name}. Else run agent-gateway storage migrate with the owner in AGENT_GATEWAY_STORAGE_OWNER.`
}

/** A name as SQL writes it. */
export const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`
