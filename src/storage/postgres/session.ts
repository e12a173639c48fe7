/** Settings of a session, where a connection pooler keeps none: they must be those of the role. */
import type { ClientBase } from 'pg'
import { StartupError } from '../../base/refusals.ts'
import { serverLimits } from './connection.ts'
import { type PostgresSettings, parseAddress, timeoutOf } from './settings.ts'

/** @throws StartupError with the statements that set what is missing */
export async function assertSession(client: Pick<ClientBase, 'query'>, settings: PostgresSettings): Promise<void> {
  if (settings.listenConnectionString === undefined) return
  const wanted = { search_path: settings.schema, ...serverLimits(timeoutOf(settings)) }
  const { rows } = await client.query<{ name: string; setting: string }>(
    'select name, setting from pg_settings where name = any ($1)',
    [Object.keys(wanted)],
  )
  const found = new Map(rows.map(({ name, setting }) => [name, setting]))
  const missing = Object.entries(wanted).filter(([name, value]) => found.get(name) !== String(value))
  if (missing.length === 0) return
  const { user, database } = parseAddress(settings)
  const alter = `alter role "${user}" in database "${database}" set`
  throw new StartupError(
    `Through a connection pooler, these must be settings of the role, for new connections: ${missing
      .map(([name, value]) => `${alter} ${name} = ${value};`)
      .join(' ')}`,
  )
}
