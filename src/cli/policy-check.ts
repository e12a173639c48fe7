import { resolve } from 'node:path'
import { type PolicyInput, prepareSet } from '../policies/entry.ts'
import { type PolicyFolder, readPolicyPaths } from '../policies/files.ts'
import { languageOf } from '../policies/language.ts'
import { readFixedPolicies } from '../policies/open.ts'
import { parsePolicyInTurns } from '../policy/language/parse.ts'
import { type LintWarning, lintPolicy, type SilencedWarning, type Unfinished } from '../policy/lint/lint.ts'
import { systemClock } from '../runtime/clock.ts'
import { type Configuration, configHelp, configOption, readConfiguration } from './configuration.ts'
import { jsonHelp, jsonOption, printJson, readArgs, type Shell } from './shell.ts'

export const help = `usage: agent-gateway policy check [PATH...] [--strict] [--json] [--config FILE]

Checks the policies in PATH, files or folders of them, or else those of the configuration file and of Policy:Directory. Prints every
mistake, and a warning (W_...) for what is valid but probably a mistake. Warnings that a rule silences are printed with the
reason. Exit code 0 when there is no mistake, else 1.

  --strict       warnings count as mistakes; silenced ones do not
${jsonHelp}: ok, policies, mistakes, warnings, silenced, unfinished
${configHelp}

Examples:
  agent-gateway policy check policies/*.yaml --strict
  agent-gateway policy check --json | jq -r '.warnings[] | .place + " " + .code'`

const options = { ...configOption, ...jsonOption, strict: { type: 'boolean' } } as const

export async function run(shell: Shell): Promise<number> {
  const { values, positionals } = readArgs(shell, options, Number.POSITIVE_INFINITY)
  const configuration = readConfiguration(shell, values.config)
  const { inputs, lines } = await (positionals.length > 0
    ? readPolicyPaths(positionals)
    : readConfigured(configuration))
  const prepared = await prepareSet(languageOf(configuration.config), inputs)
  const reports = await Promise.all(inputs.map(input => lintInput(input, configuration)))
  const result: PolicyCheckResult = {
    policies: prepared.entries.size,
    mistakes: [...lines, ...prepared.lines],
    warnings: reports.flatMap(({ warnings }) => warnings),
    silenced: reports.flatMap(({ silenced }) => silenced),
    unfinished: reports.flatMap(({ unfinished }) => unfinished),
  }
  const ok = result.mistakes.length === 0 && (values.strict !== true || result.warnings.length === 0)
  if (values.json === true) printJson(shell, { ok, ...result })
  else printLines(shell, result)
  return ok ? 0 : 1
}

interface PolicyCheckResult extends WarningReport {
  /** How many have no mistake. */
  readonly policies: number
  readonly mistakes: readonly string[]
}

function printLines(shell: Shell, { policies, mistakes, warnings, silenced, unfinished }: PolicyCheckResult): void {
  const lineOf = ({ place, path, message }: Placed<LintWarning>) => `${place}: ${path}: ${message}`
  for (const mistake of mistakes) shell.complain(mistake)
  for (const warning of warnings) shell.print(`${lineOf(warning)} (${warning.code})`)
  for (const warning of silenced) shell.print(`${lineOf(warning)} (${warning.code}, silenced: ${warning.reason})`)
  for (const { place, code, rules } of unfinished) {
    shell.print(`${place}: not looked for in the last ${rules} rules, which takes too long: ${code}`)
  }
  const counts = `policies: ${policies}, mistakes: ${mistakes.length}, warnings: ${warnings.length}`
  shell.print(silenced.length === 0 ? counts : `${counts}, silenced: ${silenced.length}`)
}

function readConfigured({ config, baseDirectory }: Configuration): Promise<PolicyFolder> {
  const directory = resolve(baseDirectory, config.Policy.Directory)
  return readFixedPolicies({ directory, inline: config.Policies, clock: systemClock })
}

/** A warning, and where it is: `policies/x.yaml:8:5`. */
type Placed<W> = W & { readonly place: string }

interface WarningReport {
  readonly warnings: readonly Placed<LintWarning>[]
  readonly silenced: readonly Placed<SilencedWarning>[]
  readonly unfinished: readonly Placed<Unfinished>[]
}

/** A document with mistakes has no warnings. */
async function lintInput(
  { document, where, createdAt }: PolicyInput,
  { config }: Configuration,
): Promise<WarningReport> {
  const parsed = await parsePolicyInTurns(document, languageOf(config))
  if ('problems' in parsed) return { warnings: [], silenced: [], unfinished: [] }
  const report = lintPolicy(parsed.policy, { ...languageOf(config), now: systemClock.now(), unchangedSince: createdAt })
  const placed = <W extends LintWarning>(warning: W): Placed<W> => ({ place: where(warning.path), ...warning })
  return {
    warnings: report.warnings.map(placed),
    silenced: report.silenced.map(placed),
    unfinished: report.unfinished.map(one => ({ place: where('rules'), ...one })),
  }
}
