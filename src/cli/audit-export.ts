import { resolve } from 'node:path'
import { exportTrail } from '../audit/trail.ts'
import { openSqliteTrail } from '../storage/sqlite/trail.ts'
import { configHelp, configOption, readConfiguration } from './configuration.ts'
import { readArgs, type Shell } from './shell.ts'

export const help = `usage: agent-gateway audit export [--config FILE]

Prints the audit trail in Storage:DataDirectory as lines of JSON, oldest first, also while the gateway runs.

${configHelp}`

export async function run(shell: Shell): Promise<number> {
  const { values } = readArgs(shell, configOption)
  const { config, baseDirectory } = readConfiguration(shell, values.config)
  const trail = openSqliteTrail(resolve(baseDirectory, config.Storage.DataDirectory))
  try {
    for await (const line of exportTrail(trail)) shell.print(line.trimEnd())
    return 0
  } finally {
    trail.close()
  }
}
