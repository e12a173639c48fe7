/** Looks at a database without changing it: its clock, its schema, and what the user may do there. */
import type { PoolClient } from 'pg'
import type { Clock } from '../../runtime/clock.ts'
import { ownVersion } from '../../runtime/version.ts'
import { DatabaseConnections } from './connection.ts'
import { assertServer, withClient } from './migrate.ts'
import { readOnly } from './roles.ts'
import { assertSession } from './session.ts'
import type { PostgresSettings } from './settings.ts'
import { missingSteps, stepsOf } from './steps.ts'

export interface Inspection {
  /** How far the clock of the database is ahead, milliseconds; exact to half of the round trip. */
  readonly aheadMs: number
  readonly roundTripMs: number
  /** Steps that the schema lacks. */
  readonly missing: readonly string[]
  /** Whether a start runs them. */
  readonly migrates: boolean
  readonly mayCreate: boolean
  /** What the user may not do: `insert into agents`. */
  readonly lacks: readonly string[]
}

/** @throws StartupError with one line that says what to change, when it cannot be reached or used */
export async function inspectDatabase(given: PostgresSettings, clock: Clock): Promise<Inspection> {
  const settings = { ...given, poolSize: 1 }
  const connections = new DatabaseConnections(settings)
  try {
    return await withClient(connections, settings, async client => {
      await assertServer(client)
      await assertSession(client, settings)
      await client.query('begin read only')
      const missing = await missingSteps(connections.over(client), stepsOf(settings.schema), ownVersion())
      return {
        ...(await compareClocks(client, clock)),
        missing,
        migrates: (settings.migrate ?? 'Auto') === 'Auto',
        mayCreate: await mayCreateIn(client, settings.schema),
        lacks: missing.length > 0 ? [] : await lackingRights(client, settings.schema),
      }
    })
  } finally {
    await connections.close()
  }
}

/** The machine may be busy: the shortest of a few round trips counts. */
async function compareClocks(client: PoolClient, clock: Clock): Promise<Pick<Inspection, 'aheadMs' | 'roundTripMs'>> {
  let best = { aheadMs: 0, roundTripMs: Number.POSITIVE_INFINITY }
  for (let times = 0; times < 3; times++) {
    const [begun, now] = [clock.steady(), clock.now()]
    const { rows } = await client.query<{ ms: number }>(
      'select (extract(epoch from clock_timestamp()) * 1000)::float8 as ms',
    )
    const roundTripMs = clock.steady() - begun
    if (roundTripMs < best.roundTripMs) best = { aheadMs: rows[0]!.ms - now - roundTripMs / 2, roundTripMs }
  }
  return best
}

async function mayCreateIn(client: PoolClient, schema: string): Promise<boolean> {
  const { rows } = await client.query<{ may: boolean }>(
    `select coalesce((select has_schema_privilege(oid, 'create') from pg_namespace where nspname = $1),
      has_database_privilege(current_database(), 'create')) as may`,
    [schema],
  )
  return rows[0]?.may === true
}

async function lackingRights(client: PoolClient, schema: string): Promise<readonly string[]> {
  const { rows } = await client.query<{ what: string }>(
    `select privilege || ' ' || relname as what
      from pg_class c cross join unnest(array['select', 'insert', 'update', 'delete']) as privilege
      where relnamespace = (select oid from pg_namespace where nspname = $1) and relkind = 'r'
        and (privilege = 'select' or relname <> all ($2)) and not has_table_privilege(c.oid, privilege)
    union all select 'execute ' || proname from pg_proc p
      where pronamespace = (select oid from pg_namespace where nspname = $1) and not has_function_privilege(p.oid, 'execute')
    order by what`,
    [schema, readOnly],
  )
  return rows.map(({ what }) => what)
}
