import { configHelp, configOption, readConfiguration } from './configuration.ts'
import { readPolicies } from './policies.ts'
import type { Shell } from './shell.ts'
import { readArgs } from './shell.ts'

export const help = `usage: agent-gateway check [--config FILE]

Checks the configuration and the policies without starting the gateway. Prints every mistake with its place.
Exit code 0 when there is none, else 1. Policies made over the API are not looked at.

${configHelp}`

export async function run(shell: Shell): Promise<number> {
  const { values } = readArgs(shell, configOption)
  const configuration = readConfiguration(shell, values.config)
  const { entries, lines } = await readPolicies(configuration)
  for (const line of lines) shell.complain(line)
  if (lines.length > 0) return 1
  const names = [...entries.keys()].join(', ') || 'none'
  shell.print(`${configuration.file?.path ?? 'defaults and environment'}: no mistakes; policies: ${names}`)
  return 0
}
