import { resolve } from 'node:path'
import { StartupError } from '../base/refusals.ts'
import { type Environment, misnamedVariables } from '../config/environment.ts'
import { formatProblem } from '../config/given.ts'
import { type Config, schema } from '../config/schema.ts'
import { checkReceivers } from '../gateway/receivers.ts'
import { describeStorage } from '../gateway/storage.ts'
import { readCurrentCertificate } from '../http/certificate.ts'
import type { PreparedSet } from '../policies/entry.ts'
import { decisionSettings, readPolicies, soloRulebooks } from '../policies/language.ts'
import { createSelfTest } from '../policies/policy-tests.ts'
import { systemClock } from '../runtime/clock.ts'
import { type Configuration, configHelp, configOption, readConfiguration, tryConfiguration } from './configuration.ts'
import { machineChecks } from './machine.ts'
import { jsonHelp, jsonOption, printJson, readArgs, type Shell } from './shell.ts'
import { upstreamsOf } from './upstreams.ts'

export const help = `usage: agent-gateway check [--json] [--config FILE]

Checks the configuration, the files and variables it names (certificate, credentials, webhooks), the policies and their
tests, the data folder and the addresses, without starting the gateway. Prints every mistake with its place. Exit code 0
when there is none, else 1. Run it as the user of the gateway. It does not check policies created over the API.

${jsonHelp}: ok, mistakes, policies
${configHelp}

Examples:
  agent-gateway check --config /etc/agent-gateway/gateway.yaml
  agent-gateway check --json | jq -r '.mistakes[]'`

const options = { ...configOption, ...jsonOption } as const

type PreparedEntries = PreparedSet['entries']

interface ConfigCheckResult {
  readonly mistakes: readonly string[]
  /** With their rules counted: a file that was cut off may still be a valid policy. */
  readonly policies: readonly { readonly name: string; readonly rules: number }[]
}

export async function run(shell: Shell): Promise<number> {
  const { values } = readArgs(shell, options)
  if (values.json === true) return printResult(shell, values.config)
  const configuration = readConfiguration(shell, values.config)
  const { mistakes, policies } = await checkAll(configuration, shell.env)
  for (const mistake of mistakes) shell.complain(mistake)
  if (mistakes.length > 0) return 1
  const names = policies.map(({ name, rules }) => `${name} (${rules} ${rules === 1 ? 'rule' : 'rules'})`)
  shell.print(`${nameOf(configuration)}: no mistakes; policies: ${names.join(', ') || 'none'}`)
  return 0
}

async function printResult(shell: Shell, path: string | undefined): Promise<number> {
  const configuration = tryConfiguration(shell, path)
  const { mistakes, policies }: ConfigCheckResult =
    'mistakes' in configuration ? { ...configuration, policies: [] } : await checkAll(configuration, shell.env)
  const ok = mistakes.length === 0
  printJson(shell, { ok, mistakes, policies })
  return ok ? 0 : 1
}

async function checkAll(configuration: Configuration, env: Environment): Promise<ConfigCheckResult> {
  const { entries, lines } = await readPolicies(configuration.config, configuration.baseDirectory)
  const failing = lines.length > 0 ? [] : await failingTests(configuration, entries)
  const misnamed = misnamedVariables(schema, env).map(formatProblem)
  const mistakes = [...misnamed, ...(await startProblems(configuration, env)), ...lines, ...failing]
  const policies = [...entries.values()].map(({ document: { name, rules } }) => ({ name, rules: rules.length }))
  return { mistakes, policies }
}

const nameOf = ({ file }: Configuration) => file?.path ?? 'defaults and environment'

/** A gateway does not start with a policy that fails its own tests. */
function failingTests({ config, baseDirectory }: Configuration, entries: PreparedEntries): Promise<readonly string[]> {
  const selfTest = createSelfTest(resolve(baseDirectory, config.Policy.Directory))
  return selfTest(soloRulebooks(entries, decisionSettings(config)))
}

/** Problems beyond the text of the configuration that would stop the start. Each part is checked by itself. */
async function startProblems(configuration: Configuration, env: Environment): Promise<readonly string[]> {
  const { config, baseDirectory } = configuration
  const parts = [
    readCurrentCertificate(config, baseDirectory, systemClock.now()),
    tryUpstreams(configuration, env),
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

async function tryUpstreams(configuration: Configuration, env: Environment): Promise<void> {
  const upstreams = await upstreamsOf(configuration, env)
  upstreams.connections.close()
  checkReceivers(configuration.config)
}
