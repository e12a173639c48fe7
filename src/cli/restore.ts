import { resolve } from 'node:path'
import { systemClock } from '../clock.ts'
import { bringBack } from '../storage/sqlite/backup.ts'
import { configHelp, configOption, readConfiguration } from './configuration.ts'
import { readArgs, type Shell, UsageError } from './shell.ts'

export const help = `usage: agent-gateway restore DIRECTORY [--config FILE]

Replaces Storage:DataDirectory by the backup in DIRECTORY. Stop the gateway first. The previous files are kept in a
folder before-restore-... of the data folder.
The gateway cannot know what happened since the backup. At its next start it makes every token void, removes every
grant, and marks requests as unknown that were pending or had no known outcome: such a request is sent only after a
new approval with "resend": true. The audit trail records it. Agents and policies are those of the backup: revoke again
the agents that were revoked since.

${configHelp}`

export async function run(shell: Shell): Promise<number> {
  const { values, positionals } = readArgs(shell, configOption, 1)
  const [source] = positionals
  if (source === undefined) throw new UsageError('name the DIRECTORY of the backup')
  const { config, baseDirectory } = readConfiguration(shell, values.config)
  const directory = resolve(baseDirectory, config.Storage.DataDirectory)
  const stamp = new Date(systemClock.now()).toISOString().replaceAll(/[:.]/g, '-')
  const before = await bringBack(resolve(source), directory, stamp)
  if (before !== undefined) shell.print(`the previous files are in ${before}`)
  shell.print('restored. Start the gateway; agents that were revoked since the backup must be revoked again')
  return 0
}
