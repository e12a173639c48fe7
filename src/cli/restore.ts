import { resolve } from 'node:path'
import { systemClock } from '../clock.ts'
import { bringBack } from '../storage/sqlite/backup.ts'
import { configHelp, configOption, readConfiguration } from './configuration.ts'
import type { Shell } from './shell.ts'
import { readArgs, UsageError } from './shell.ts'

export const help = `usage: agent-gateway restore DIRECTORY [--config FILE]

Puts the backup in DIRECTORY in the place of Storage:DataDirectory. Stop the gateway first. What was there is kept in a
folder before-restore-... of the data folder.
The gateway cannot know what happened since the backup. When it starts next, it makes every token void, removes every
grant, and marks each request as unknown that was pending or not known to be answered: such a request is sent only by a
new approval with "resend": true. The audit trail says so. Agents and policies are as they were: revoke again those
who were revoked since.

${configHelp}`

export async function run(shell: Shell): Promise<number> {
  const { values, positionals } = readArgs(shell, configOption, 1)
  const [source] = positionals
  if (source === undefined) throw new UsageError('name the DIRECTORY of the backup')
  const { config, baseDirectory } = readConfiguration(shell, values.config)
  const directory = resolve(baseDirectory, config.Storage.DataDirectory)
  const stamp = new Date(systemClock.now()).toISOString().replaceAll(/[:.]/g, '-')
  const before = await bringBack(resolve(source), directory, stamp)
  if (before !== undefined) shell.print(`what was there is in ${before}`)
  shell.print('restored. Start the gateway; agents that were revoked since the backup must be revoked again')
  return 0
}
