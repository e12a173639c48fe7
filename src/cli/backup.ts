import { resolve } from 'node:path'
import { StartupError } from '../base/refusals.ts'
import { usesPostgres } from '../gateway/storage.ts'
import { systemClock } from '../runtime/clock.ts'
import { backUp, bringBack } from '../storage/sqlite/backup.ts'
import { configHelp, configOption, readConfiguration } from './configuration.ts'
import { type Command, misused, readArgs, type Shell } from './shell.ts'

export const backup: Command = {
  help: `usage: agent-gateway backup DIRECTORY [--config FILE]

Copies Storage:DataDirectory as it is at one moment into DIRECTORY, which must be new or empty, also while the gateway
runs: the database, signing.key and bootstrap.json. Keep the copy as private as the original.
agent-gateway restore restores it. With Storage:Provider PostgreSQL use pg_dump.

${configHelp}

Example:
  agent-gateway backup /var/backups/agent-gateway-$(date +%F)`,
  async run(shell) {
    const { given, dataDirectory } = readFolders(shell)
    const names = backUp(dataDirectory, resolve(given))
    shell.print(`${given}: ${names.join(', ')}`)
    return 0
  },
}

export const restore: Command = {
  help: `usage: agent-gateway restore DIRECTORY [--config FILE]

Replaces Storage:DataDirectory by the backup in DIRECTORY. Stop the gateway first. The previous files are kept in a
folder before-restore-... of the data folder.
The gateway cannot know what happened since the backup. At its next start it makes every token void, removes every
grant, and marks requests as unknown that were pending or had no known outcome: such a request is sent only after a
new approval with "resend": true. The audit trail records it. Agents and policies are those of the backup: revoke again
the agents that were revoked since.

${configHelp}

Example:
  agent-gateway restore /var/backups/agent-gateway-2026-01-05`,
  async run(shell) {
    const { given, dataDirectory } = readFolders(shell)
    const stamp = new Date(systemClock.now()).toISOString().replaceAll(/[:.]/g, '-')
    const before = await bringBack(resolve(given), dataDirectory, stamp)
    if (before !== undefined) shell.print(`the previous files are in ${before}`)
    shell.print('restored. Start the gateway; agents that were revoked since the backup must be revoked again')
    return 0
  },
}

const withPostgres =
  'The gateway keeps its data in PostgreSQL (Storage:Provider). Back it up with pg_dump; see docs/postgresql.md.'

/** The folder that the command names, and the data folder. */
function readFolders(shell: Shell) {
  const { values, positionals } = readArgs(shell, configOption, 1)
  const [given = misused('name the DIRECTORY of the backup')] = positionals
  const { config, baseDirectory } = readConfiguration(shell, values.config)
  if (usesPostgres(config)) throw new StartupError(withPostgres)
  return { given, dataDirectory: resolve(baseDirectory, config.Storage.DataDirectory) }
}
