import { resolve } from 'node:path'
import { backUp } from '../storage/sqlite/backup.ts'
import { configHelp, configOption, readConfiguration } from './configuration.ts'
import { readArgs, type Shell, UsageError } from './shell.ts'

export const help = `usage: agent-gateway backup DIRECTORY [--config FILE]

Copies Storage:DataDirectory as it is at one moment into DIRECTORY, which must be new or empty, also while the gateway
runs: the database, signing.key, tokens.epoch and bootstrap.json. Keep the copy as private as the original.
agent-gateway restore restores it.

${configHelp}`

export async function run(shell: Shell): Promise<number> {
  const { values, positionals } = readArgs(shell, configOption, 1)
  const [target] = positionals
  if (target === undefined) throw new UsageError('name the DIRECTORY for the backup')
  const { config, baseDirectory } = readConfiguration(shell, values.config)
  const names = backUp(resolve(baseDirectory, config.Storage.DataDirectory), resolve(target))
  shell.print(`${target}: ${names.join(', ')}`)
  return 0
}
