import { configHelp, configOption, readConfiguration } from './configuration.ts'
import type { Shell } from './shell.ts'
import { readArgs } from './shell.ts'

export const help = `usage: agent-gateway check [--config FILE]

Checks the configuration and the policies without starting the gateway. Prints every mistake with its place.
Exit code 0 when there is none, else 1.

${configHelp}`

export async function run(shell: Shell): Promise<number> {
  const { values } = readArgs(shell, configOption)
  const { file } = readConfiguration(shell, values.config)
  shell.print(`${file?.path ?? 'defaults and environment'}: no mistakes`)
  return 0
}
