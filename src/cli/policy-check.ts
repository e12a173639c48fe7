import { resolve } from 'node:path'
import { systemClock } from '../clock.ts'
import { languageOf } from '../compose/language.ts'
import { type PolicyInput, prepareSet } from '../policies/entry.ts'
import { type PolicyFolder, readPolicyFiles } from '../policies/files.ts'
import { readFixedPolicies } from '../policies/open.ts'
import { parsePolicyInTurns } from '../policy/language/parse.ts'
import { lintPolicy } from '../policy/lint/lint.ts'
import { type Configuration, configHelp, configOption, readConfiguration } from './configuration.ts'
import { readArgs, type Shell } from './shell.ts'

export const help = `usage: agent-gateway policy check [FILE...] [--strict] [--config FILE]

Checks the policies in FILE, or else those of the configuration file and of Policy:Directory. Prints every
mistake, and a warning (W_...) for what is valid but probably a mistake. Exit code 0 when there is no mistake, else 1.

  --strict       warnings count as mistakes

${configHelp}`

const options = { ...configOption, strict: { type: 'boolean' } } as const

export async function run(shell: Shell): Promise<number> {
  const { values, positionals } = readArgs(shell, options, Number.POSITIVE_INFINITY)
  const configuration = readConfiguration(shell, values.config)
  const { inputs, lines } = await (positionals.length > 0
    ? readPolicyFiles(positionals)
    : readConfigured(configuration))
  const { entries, lines: mistakes } = await prepareSet(languageOf(configuration.config), inputs)
  const warnings = (await Promise.all(inputs.map(input => warningsOf(input, configuration)))).flat()
  for (const line of [...lines, ...mistakes]) shell.complain(line)
  for (const line of warnings) shell.print(line)
  const bad = lines.length + mistakes.length
  shell.print(`policies: ${entries.size}, mistakes: ${bad}, warnings: ${warnings.length}`)
  return bad > 0 || (values.strict === true && warnings.length > 0) ? 1 : 0
}

function readConfigured({ config, baseDirectory }: Configuration): Promise<PolicyFolder> {
  const directory = resolve(baseDirectory, config.Policy.Directory)
  return readFixedPolicies({ directory, inline: config.Policies, clock: systemClock })
}

/** A document with mistakes has no warnings. */
async function warningsOf(
  { document, where, createdAt }: PolicyInput,
  { config }: Configuration,
): Promise<readonly string[]> {
  const parsed = await parsePolicyInTurns(document, languageOf(config))
  if ('problems' in parsed) return []
  const found = lintPolicy(parsed.policy, { now: systemClock.now(), unchangedSince: createdAt })
  return found.map(({ code, path, message }) => `${where(path)}: ${path}: ${message} (${code})`)
}
