import { resolve } from 'node:path'
import { systemClock } from '../clock.ts'
import { languageOf } from '../compose/language.ts'
import { type PolicyInput, prepareSet } from '../policies/entry.ts'
import { type PolicyFolder, readPolicyFiles } from '../policies/files.ts'
import { readFixedPolicies } from '../policies/open.ts'
import { parsePolicyInTurns } from '../policy/language/parse.ts'
import { type LintWarning, lintPolicy } from '../policy/lint/lint.ts'
import { type Configuration, configHelp, configOption, readConfiguration } from './configuration.ts'
import { readArgs, type Shell } from './shell.ts'

export const help = `usage: agent-gateway policy check [FILE...] [--strict] [--config FILE]

Checks the policies in FILE, or else those of the configuration file and of Policy:Directory. Prints every
mistake, and a warning (W_...) for what is valid but probably a mistake. Warnings that a rule silences are printed with the
reason. Exit code 0 when there is no mistake, else 1.

  --strict       warnings count as mistakes; silenced ones do not

${configHelp}`

const options = { ...configOption, strict: { type: 'boolean' } } as const

export async function run(shell: Shell): Promise<number> {
  const { values, positionals } = readArgs(shell, options, Number.POSITIVE_INFINITY)
  const configuration = readConfiguration(shell, values.config)
  const { inputs, lines } = await (positionals.length > 0
    ? readPolicyFiles(positionals)
    : readConfigured(configuration))
  const { entries, lines: mistakes } = await prepareSet(languageOf(configuration.config), inputs)
  const reports = await Promise.all(inputs.map(input => lintInput(input, configuration)))
  const warnings = reports.flatMap(report => report.warnings)
  const silenced = reports.flatMap(report => report.silenced)
  for (const line of [...lines, ...mistakes]) shell.complain(line)
  for (const line of [...warnings, ...silenced]) shell.print(line)
  const bad = lines.length + mistakes.length
  const counts = `policies: ${entries.size}, mistakes: ${bad}, warnings: ${warnings.length}`
  shell.print(silenced.length === 0 ? counts : `${counts}, silenced: ${silenced.length}`)
  return bad > 0 || (values.strict === true && warnings.length > 0) ? 1 : 0
}

function readConfigured({ config, baseDirectory }: Configuration): Promise<PolicyFolder> {
  const directory = resolve(baseDirectory, config.Policy.Directory)
  return readFixedPolicies({ directory, inline: config.Policies, clock: systemClock })
}

/** A line for each warning. */
interface Report {
  readonly warnings: readonly string[]
  readonly silenced: readonly string[]
}

/** A document with mistakes has no warnings. */
async function lintInput({ document, where, createdAt }: PolicyInput, { config }: Configuration): Promise<Report> {
  const parsed = await parsePolicyInTurns(document, languageOf(config))
  if ('problems' in parsed) return { warnings: [], silenced: [] }
  const { warnings, silenced } = lintPolicy(parsed.policy, { now: systemClock.now(), unchangedSince: createdAt })
  const lineOf = ({ path, message }: LintWarning) => `${where(path)}: ${path}: ${message}`
  return {
    warnings: warnings.map(warning => `${lineOf(warning)} (${warning.code})`),
    silenced: silenced.map(warning => `${lineOf(warning)} (${warning.code}, silenced: ${warning.reason})`),
  }
}
