/** Commands that read the audit trail, also while a gateway writes it. */
import { resolve } from 'node:path'
import { exportTrail, type Trail, verifyTrail } from '../audit/trail.ts'
import { postgresSettings, usesPostgres } from '../gateway/storage.ts'
import { openPostgresTrail } from '../storage/postgres/trail.ts'
import { openSqliteTrail } from '../storage/sqlite/trail.ts'
import { configHelp, configOption, readConfiguration } from './configuration.ts'
import { type Command, jsonHelp, jsonOption, printJson, readArgs, type Shell } from './shell.ts'

export const exporting: Command = {
  help: `usage: agent-gateway audit export [--config FILE]

Prints the audit trail in Storage:DataDirectory, or in PostgreSQL, as lines of JSON, oldest first, also while the gateway runs.

${configHelp}

Examples:
  agent-gateway audit export > audit.jsonl
  agent-gateway audit export | jq 'select(.action == "agent.revoke")'`,
  run(shell) {
    const { values } = readArgs(shell, configOption)
    return withTrail(shell, values.config, async trail => {
      for await (const line of exportTrail(trail)) shell.print(line.trimEnd())
      return 0
    })
  },
}

export const verifying: Command = {
  help: `usage: agent-gateway audit verify [--json] [--config FILE]

Checks the audit trail in Storage:DataDirectory, or in PostgreSQL, link by link, also while the gateway runs, and names the first entry
that is missing or was changed. Exit code 0 when there is none, else 1.
It cannot detect that the newest entries were removed: keep the last hash somewhere else and compare.

${jsonHelp}: ok, entries and lastHash; or ok, firstBroken and why
${configHelp}

Examples:
  agent-gateway audit verify
  agent-gateway audit verify --json | jq -r .lastHash`,
  run(shell) {
    const { values } = readArgs(shell, { ...configOption, ...jsonOption })
    return withTrail(shell, values.config, async trail => {
      const result = await verifyTrail(trail)
      if (values.json === true) printJson(shell, result)
      else if (result.ok)
        shell.print(`${result.entries} entries are as they were written; the last hash is ${result.lastHash}`)
      else shell.complain(`broken at entry ${result.firstBroken}: ${result.why}`)
      return result.ok ? 0 : 1
    })
  },
}

type TrailWork = (trail: Trail) => Promise<number>

async function withTrail(shell: Shell, path: string | undefined, work: TrailWork): Promise<number> {
  const { config, baseDirectory } = readConfiguration(shell, path)
  const trail = usesPostgres(config)
    ? openPostgresTrail(postgresSettings(config, baseDirectory))
    : openSqliteTrail(resolve(baseDirectory, config.Storage.DataDirectory))
  return work(trail).finally(() => trail.close())
}
