import { resolve } from 'node:path'
import { verifyTrail } from '../audit/trail.ts'
import { openSqliteTrail } from '../storage/sqlite/trail.ts'
import { configHelp, configOption, readConfiguration } from './configuration.ts'
import { readArgs, type Shell } from './shell.ts'

export const help = `usage: agent-gateway audit verify [--config FILE]

Checks the audit trail in Storage:DataDirectory link by link, also while the gateway runs, and names the first entry
that is missing or was changed. Exit code 0 when there is none, else 1.
It cannot detect that the newest entries were removed: keep the last hash somewhere else and compare.

${configHelp}`

export async function run(shell: Shell): Promise<number> {
  const { values } = readArgs(shell, configOption)
  const { config, baseDirectory } = readConfiguration(shell, values.config)
  const trail = openSqliteTrail(resolve(baseDirectory, config.Storage.DataDirectory))
  try {
    const result = await verifyTrail(trail)
    if (result.ok)
      shell.print(`${result.entries} entries are as they were written; the last hash is ${result.lastHash}`)
    else shell.complain(`broken at entry ${result.firstBroken}: ${result.why}`)
    return result.ok ? 0 : 1
  } finally {
    trail.close()
  }
}
