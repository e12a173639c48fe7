import { differenceOf, type PolicyDifference } from '../policy/diff/difference.ts'
import type { MilderRequest } from '../policy/diff/examples.ts'
import { configHelp, configOption, readConfiguration } from './configuration.ts'
import { readOnePolicy } from './one-policy.ts'
import { jsonHelp, jsonOption, printResult, readArgs, type Shell, UsageError } from './shell.ts'

export const help = `usage: agent-gateway policy diff OLD NEW [--fail-on wider] [--markdown] [--json] [--config FILE]

Compares two policy files. Each rule is added, removed, moved, changed, narrower, wider, the same, or not proved: then it may match
other requests. Where the new policy is milder, a request shows it, which both policies decided.

  --fail-on wider  exit code 3 when a request shows that the new policy is milder, or when that is not excluded
  --markdown       print tables, for a comment on a change
${jsonHelp}: wider, rules, examples, default
${configHelp}

Example:
  agent-gateway policy diff old/support-agent.yaml policies/support-agent.yaml --fail-on wider`

const options = {
  ...configOption,
  ...jsonOption,
  'fail-on': { type: 'string' },
  markdown: { type: 'boolean' },
} as const

/** Exit code when --fail-on applies. */
const failed = 3

export async function run(shell: Shell): Promise<number> {
  const { values, positionals } = readArgs(shell, options, 2)
  const [oldFile, newFile] = positionals
  if (oldFile === undefined || newFile === undefined) throw new UsageError('OLD and NEW are needed')
  if (![undefined, 'wider'].includes(values['fail-on'])) throw new UsageError('--fail-on must be wider')
  const configuration = readConfiguration(shell, values.config)
  const before = await readOnePolicy(oldFile, configuration)
  const after = await readOnePolicy(newFile, configuration)
  const result = differenceOf(before, after)
  printResult(shell, values, result, values.markdown === true ? markdownOf(result) : linesOf(result))
  return values['fail-on'] === 'wider' && result.wider !== 'no' ? failed : 0
}

const verdicts = {
  shown: 'The new policy is milder for the requests above.',
  possible: 'That the new policy is milder for some request is not excluded.',
  no: 'The new policy is milder for no request.',
}

function linesOf({ wider, rules, examples, default: { before, after } }: PolicyDifference): readonly string[] {
  const changed = rules.filter(({ difference }) => difference !== 'same')
  return [
    ...changed.map(({ rule, effect, difference, changes }) => {
      return `${difference.padEnd(11)}${rule} (${effect})${changes.length === 0 ? '' : `: ${changes.join(', ')}`}`
    }),
    ...(before === after ? [] : [`default    ${before} -> ${after}`]),
    `${rules.length - changed.length} rules are the same`,
    ...examples.map(
      example => `${example.before} -> ${example.after}  ${requestText(example)}  (${deciders(example)})`,
    ),
    verdicts[wider],
  ]
}

function requestText({ method, url, body, agent }: MilderRequest): string {
  const facts = Object.keys(agent).length === 0 ? '' : ` by an agent with ${JSON.stringify(agent)}`
  return `${method} ${url}${body === '' ? '' : ` ${body}`}${facts}`
}

const deciders = ({ ruleBefore, ruleAfter }: MilderRequest): string =>
  `before: ${ruleBefore ?? 'the default'}, now: ${ruleAfter ?? 'the default'}`

function markdownOf({ wider, rules, examples, default: { before, after } }: PolicyDifference): readonly string[] {
  const cell = (text: string) => text.replaceAll('\\', '\\\\').replaceAll('|', '\\|').replaceAll('`', "'")
  const rows = rules
    .filter(({ difference }) => difference !== 'same')
    .map(({ rule, effect, difference, changes }) => [rule, effect, [difference, ...changes].join(', ')])
  if (before !== after) rows.push(['(default)', after, `was ${before}`])
  const shown = examples.map(one => [requestText(one), `${one.before} -> ${one.after}`, deciders(one)])
  const table = (heads: readonly string[], body: readonly (readonly string[])[]) => {
    if (body.length === 0) return []
    const row = (cells: readonly string[]) => `| ${cells.map(text => `\`${cell(text)}\``).join(' | ')} |`
    return [`| ${heads.join(' | ')} |`, `|${heads.map(() => '---|').join('')}`, ...body.map(row), '']
  }
  return [
    ...table(['Rule', 'Effect', 'Change'], rows),
    ...table(['Request', 'Effect', 'Decided by'], shown),
    verdicts[wider],
  ]
}
