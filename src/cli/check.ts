import { resolve } from 'node:path'
import { systemClock } from '../clock.ts'
import { readCurrentCertificate } from '../compose/certificate.ts'
import { decisionSettings, readPolicies, soloRulebooks } from '../compose/language.ts'
import { createSelfTest } from '../compose/policy-tests.ts'
import { describeStorage } from '../compose/storage.ts'
import { openUpstreams } from '../compose/upstreams.ts'
import { checkHooks } from '../compose/webhooks.ts'
import { type Environment, misnamedVariables } from '../config/environment.ts'
import { formatProblem } from '../config/given.ts'
import { type Config, schema } from '../config/schema.ts'
import { StartupError } from '../errors.ts'
import type { PolicyEntry, PreparedSet } from '../policies/entry.ts'
import { systemLookup } from '../upstream/system-lookup.ts'
import { type Configuration, configHelp, configOption, readConfiguration } from './configuration.ts'
import { machineChecks } from './machine.ts'
import { readArgs, type Shell } from './shell.ts'

export const help = `usage: agent-gateway check [--config FILE]

Checks the configuration, the files and variables it names (certificate, credentials, webhooks), the policies and their
tests, the data folder and the addresses, without starting the gateway. Prints every mistake with its place. Exit code 0
when there is none, else 1. Run it as the user of the gateway. It does not check policies created over the API.

${configHelp}`

type Entries = PreparedSet['entries']

export async function run(shell: Shell): Promise<number> {
  const { values } = readArgs(shell, configOption)
  const configuration = readConfiguration(shell, values.config)
  const { entries, lines: mistakes } = await readPolicies(configuration.config, configuration.baseDirectory)
  const failing = mistakes.length > 0 ? [] : await failingTests(configuration, entries)
  const misnamed = misnamedVariables(schema, shell.env).map(formatProblem)
  const lines = [...misnamed, ...(await startProblems(configuration, shell.env)), ...mistakes, ...failing]
  for (const line of lines) shell.complain(line)
  if (lines.length > 0) return 1
  const names = [...entries.values()].map(describePolicy).join(', ') || 'none'
  shell.print(`${configuration.file?.path ?? 'defaults and environment'}: no mistakes; policies: ${names}`)
  return 0
}

/** With its rules counted: a file that was cut off may still be a valid policy. */
function describePolicy({ document: { name, rules } }: PolicyEntry): string {
  return `${name} (${rules.length} ${rules.length === 1 ? 'rule' : 'rules'})`
}

/** A gateway does not start with a policy that fails its own tests. */
function failingTests({ config, baseDirectory }: Configuration, entries: Entries): Promise<readonly string[]> {
  const selfTest = createSelfTest(resolve(baseDirectory, config.Policy.Directory))
  return selfTest(soloRulebooks(entries, decisionSettings(config)))
}

/** Problems beyond the text of the configuration that would stop the start. Each part is checked by itself. */
async function startProblems(configuration: Configuration, env: Environment): Promise<readonly string[]> {
  const { config, baseDirectory } = configuration
  const parts = [
    readCurrentCertificate(config, baseDirectory, systemClock.now()),
    tryUpstreams(config, baseDirectory, env),
    tryStorage(config, baseDirectory),
    ...machineChecks(configuration),
  ]
  return (await Promise.allSettled(parts)).flatMap(part => {
    if (part.status === 'fulfilled') return []
    if (part.reason instanceof StartupError) return [part.reason.message]
    throw part.reason
  })
}

/** The database is not called. */
async function tryStorage(config: Config, baseDirectory: string): Promise<void> {
  describeStorage({ config, baseDirectory })
}

async function tryUpstreams(config: Config, baseDirectory: string, env: Environment): Promise<void> {
  const upstreams = await openUpstreams(config, baseDirectory, { clock: systemClock, lookup: systemLookup, env })
  try {
    checkHooks(config.HumanInTheLoop.Webhooks, upstreams.ownRequests)
  } finally {
    upstreams.connections.close()
  }
}
