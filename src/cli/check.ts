import { readCertificate } from '../compose/certificate.ts'
import { StartupError } from '../errors.ts'
import type { Configuration } from './configuration.ts'
import { configHelp, configOption, readConfiguration } from './configuration.ts'
import { readPolicies } from './policies.ts'
import type { Shell } from './shell.ts'
import { readArgs } from './shell.ts'

export const help = `usage: agent-gateway check [--config FILE]

Checks the configuration, the certificate and the policies without starting the gateway. Prints every mistake with its place.
Exit code 0 when there is none, else 1. Policies made over the API are not looked at.

${configHelp}`

export async function run(shell: Shell): Promise<number> {
  const { values } = readArgs(shell, configOption)
  const configuration = readConfiguration(shell, values.config)
  const { entries, lines: mistakes } = await readPolicies(configuration)
  const lines = [...(await certificateProblem(configuration)), ...mistakes]
  for (const line of lines) shell.complain(line)
  if (lines.length > 0) return 1
  const names = [...entries.keys()].join(', ') || 'none'
  shell.print(`${configuration.file?.path ?? 'defaults and environment'}: no mistakes; policies: ${names}`)
  return 0
}

async function certificateProblem({ config, baseDirectory }: Configuration): Promise<readonly string[]> {
  try {
    await readCertificate(config, baseDirectory)
    return []
  } catch (error) {
    if (error instanceof StartupError) return [error.message]
    throw error
  }
}
