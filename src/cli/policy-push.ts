import { type FieldError, StartupError } from '../base/refusals.ts'
import { type PolicyInput, prepareSet } from '../policies/entry.ts'
import { readPolicyFolder } from '../policies/files.ts'
import { decisionSettings, languageOf, soloRulebooks } from '../policies/language.ts'
import { createSelfTest } from '../policies/policy-tests.ts'
import type { Pushed } from '../policies/push.ts'
import { askGateway, gatewayHelp } from './ask-gateway.ts'
import { type Configuration, configHelp, configOption, readConfiguration } from './configuration.ts'
import { atHelp } from './gateway-address.ts'
import { misused, readArgs, type Shell } from './shell.ts'

export const help = `usage: agent-gateway policy push FOLDER [--prune] [--dry-run] [--at ADDRESS] [--config FILE]

Puts the policies in the files of FOLDER into the store of the running gateway, all of them or none, in one commit.
They are in force in every gateway when the command ends. The tests of FOLDER, *.test.yaml, run first: when one fails, nothing is pushed.
A policy that is in a file of the gateway, or in its settings, cannot be pushed.

${gatewayHelp}

  --dry-run      only prints what would change
  --prune        removes the policies made over the API that are not in FOLDER, unless something still names one
${atHelp}
${configHelp}

Examples:
  agent-gateway policy push policies
  AGENT_GATEWAY_TOKEN=... agent-gateway policy push policies --prune --at https://gateway.example`

const options = {
  ...configOption,
  at: { type: 'string' },
  prune: { type: 'boolean' },
  'dry-run': { type: 'boolean' },
} as const

export async function run(shell: Shell): Promise<number> {
  const { values, positionals } = readArgs(shell, options, 1)
  const [folder = misused('FOLDER is missing')] = positionals
  const inputs = await readFolder(folder)
  const configuration = readConfiguration(shell, values.config)
  await testFolder(folder, inputs, configuration)
  const body = {
    policies: inputs.map(({ document }) => document),
    prune: values.prune ?? false,
    dryRun: values['dry-run'] ?? false,
  }
  const asking = { configuration, at: values.at, describe: (error: FieldError) => describe(error, inputs) }
  const answer = await askGateway<Pushed>(shell, asking, { method: 'PUT', path: '/policies', body })
  for (const what of ['created', 'replaced', 'removed', 'unchanged'] as const) {
    for (const name of answer[what]) shell.print(`${what.padEnd(10)}${name}`)
  }
  return 0
}

/** @throws StartupError with a line for each file that cannot be read */
async function readFolder(folder: string): Promise<readonly PolicyInput[]> {
  const { inputs, lines } = await readPolicyFolder(folder).catch(error => {
    throw new StartupError(`${folder} cannot be read (${error.code}). Name a folder of policy files.`)
  })
  if (lines.length > 0) throw new StartupError(lines.join('\n'))
  if (inputs.length === 0) throw new StartupError(`${folder} contains no policy files (*.yaml).`)
  return inputs
}

/**
 * Mistakes in policies are left to the gateway, which knows its own language.
 *
 * @throws StartupError with a line for each test that fails
 */
async function testFolder(folder: string, inputs: readonly PolicyInput[], { config }: Configuration): Promise<void> {
  const { entries, lines } = await prepareSet(languageOf(config), inputs)
  if (lines.length > 0) return
  const failed = await createSelfTest(folder)(soloRulebooks(entries, decisionSettings(config)))
  if (failed.length > 0) throw new StartupError(['nothing was pushed:', ...failed].join('\n  '))
}

/** The error with its place in the file. */
function describe({ field, message }: FieldError, inputs: readonly PolicyInput[]): string {
  const [, index = '', path = ''] = /^policies\[(\d+)\]\.?(.*)$/.exec(field) ?? []
  return `${inputs[Number(index)]?.where(path) ?? field}: ${message}`
}
