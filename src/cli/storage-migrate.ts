import { StartupError } from '../base/refusals.ts'
import { postgresSettings, usesPostgres } from '../gateway/storage.ts'
import { migrateAs } from '../storage/postgres/roles.ts'
import { configHelp, configOption, readConfiguration } from './configuration.ts'
import { readArgs, type Shell } from './shell.ts'

export const help = `usage: agent-gateway storage migrate [--owner postgres://user@host/database] [--config FILE]

Brings the PostgreSQL schema of the configuration up to date, in one transaction. With another owner, the user of
Storage:PostgreSQL:ConnectionString gets the rights that a gateway needs, and no others: it cannot change the audit trail,
and create or drop nothing. Run it again after each update of the gateway.

  --owner        the address as the owner of the schema; Storage:PostgreSQL:ConnectionString if absent
                 Other users of this machine can read arguments (ps). Put an address with a password into the
                 environment instead: AGENT_GATEWAY_STORAGE_OWNER.
${configHelp}

Example:
  AGENT_GATEWAY_STORAGE_OWNER=postgres://owner:password@db/gateway agent-gateway storage migrate`

export async function run(shell: Shell): Promise<number> {
  const { values } = readArgs(shell, { ...configOption, owner: { type: 'string' } })
  const { config, baseDirectory } = readConfiguration(shell, values.config)
  if (!usesPostgres(config)) throw new StartupError(nothingToDo)
  const settings = postgresSettings(config, baseDirectory)
  const owner = values.owner ?? shell.env['AGENT_GATEWAY_STORAGE_OWNER'] ?? settings.connectionString
  const { steps, role } = await migrateAs(settings, owner)
  shell.print(steps.length === 0 ? 'the schema is up to date' : `done: ${steps.join(', ')}`)
  if (role !== undefined) shell.print(`the role ${role} can run gateways`)
  return 0
}

const nothingToDo =
  'There is nothing to do: with Storage:Provider Sqlite the gateway brings its database up to date at its start.'
