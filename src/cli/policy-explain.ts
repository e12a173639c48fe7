import { readFileSync } from 'node:fs'
import { asError } from '../base/as-error.ts'
import { StartupError } from '../base/refusals.ts'
import { decisionSettings, readPolicies, soloRulebook, soloRulebooks } from '../policies/language.ts'
import { type Explanation, explainDescription, type NodeExplanation } from '../policy/evaluation/explain.ts'
import type { Rulebook } from '../policy/evaluation/rulebook.ts'
import type { RequestDescription } from '../policy/request/describe.ts'
import { systemClock } from '../runtime/clock.ts'
import { type Configuration, configHelp, configOption, readConfiguration } from './configuration.ts'
import { readCurl } from './curl.ts'
import { readOnePolicy } from './one-policy.ts'
import { jsonHelp, jsonOption, misused, printResult, readArgs, type Shell, UsageError } from './shell.ts'

export const help = `usage: agent-gateway policy explain POLICY [--request FILE] [--method M] [--url URL] [--header 'NAME: VALUE']...
                                    [--data BODY] [--json] [--config FILE]
       agent-gateway policy explain POLICY [OPTIONS] -- curl ...

Shows what a policy makes of a request, rule by rule, with the value that each condition saw. POLICY is a file, or the name of a
policy of the configuration. Nothing is sent. Behind -- stands the command line of curl as you run it, also through /proxy/.
Credentials in header fields are not shown.

  --request FILE  the request as POST /policies/{name}/explain takes it, in JSON
  --method M      GET if absent, POST with a body
  --url URL       the URL of the upstream
  --header LINE   a header field; may be repeated
  --data BODY     the body, as JSON unless a header field says otherwise
${jsonHelp}: result, rules
${configHelp}

Examples:
  agent-gateway policy explain policies/shop.yaml --url https://api.shop.example/v1/orders
  agent-gateway policy explain shop -- curl -X POST https://api.shop.example/v1/refunds --json '{"amount":250}'`

const options = {
  ...configOption,
  ...jsonOption,
  request: { type: 'string' },
  method: { type: 'string' },
  url: { type: 'string' },
  header: { type: 'string', multiple: true },
  data: { type: 'string' },
} as const

export async function run(shell: Shell): Promise<number> {
  const end = shell.args.indexOf('--')
  const own = end < 0 ? shell.args : shell.args.slice(0, end)
  const { values, positionals } = readArgs({ ...shell, args: own }, options, 1)
  const [policy = misused('POLICY is missing')] = positionals
  const given = end < 0 ? descriptionOf(values) : { request: readCurl(curlWords(shell.args.slice(end + 1))) }
  const rulebook = await rulebookOf(policy, readConfiguration(shell, values.config))
  const explained = explainDescription(rulebook, given, systemClock.now())
  if ('problem' in explained) throw new StartupError(explained.problem)
  return printResult(shell, values, explained, linesOf(explained))
}

function curlWords([first, ...rest]: readonly string[]): readonly string[] {
  if (first !== 'curl') throw new UsageError('behind -- must stand curl and its arguments')
  return rest
}

interface GivenRequest {
  readonly request?: string | undefined
  readonly method?: string | undefined
  readonly url?: string | undefined
  readonly header?: readonly string[] | undefined
  readonly data?: string | undefined
}

function descriptionOf({ request, method, url, header = [], data }: GivenRequest): RequestDescription {
  if (request !== undefined) return readDescription(request)
  if (url === undefined) throw new UsageError('--url, --request or -- curl is needed')
  const typed = header.some(line => /^content-type\s*:/i.test(line))
  const lines = data === undefined || typed ? header : [...header, 'Content-Type: application/json']
  const words = [...lines.flatMap(line => ['--header', line]), '--url', url]
  const body = data === undefined ? [] : ['--data-raw', data]
  return { request: readCurl([...(method === undefined ? [] : ['--request', method]), ...words, ...body]) }
}

/** @throws StartupError when it is not such a file */
function readDescription(path: string): RequestDescription {
  try {
    const given = JSON.parse(readFileSync(path, 'utf8'))
    if (typeof given?.request?.url === 'string') return given
  } catch (error) {
    throw new StartupError(`${path} cannot be read: ${asError(error).message}`)
  }
  throw new StartupError(`${path} must have a member request with a url`)
}

async function rulebookOf(policy: string, configuration: Configuration): Promise<Rulebook> {
  const settings = decisionSettings(configuration.config)
  if (/[/\\]|\.ya?ml$/.test(policy)) return soloRulebook(await readOnePolicy(policy, configuration), settings)
  const { entries, lines } = await readPolicies(configuration.config, configuration.baseDirectory)
  const found = soloRulebooks(entries, settings)(policy)
  if (found === undefined) throw new StartupError([`there is no policy ${policy}`, ...lines].join('\n  '))
  return found
}

function linesOf({ result, rules, readings }: Explanation): readonly string[] {
  const reason = 'reason' in result ? [result.reason] : []
  const ways = readings === undefined ? [] : [`servers read the path as ${readings.join(' or ')}`]
  const explained = rules.flatMap(({ rule, effect, priority, mode, matches, conditions }) => [
    `${matches ? 'matches' : '       '}  ${rule} (${effect}, priority ${priority}${mode === 'shadow' ? ', shadow' : ''})`,
    ...conditions.flatMap(node => nodeLines(node, 1)),
  ])
  return [result.decision ?? 'The body is needed', ...reason, ...ways, '', ...explained]
}

function nodeLines({ condition, value, ...rest }: NodeExplanation, depth: number): readonly string[] {
  const indent = '  '.repeat(depth)
  const actual = 'actual' in rest && rest.actual !== undefined ? `, was ${JSON.stringify(rest.actual)}` : ''
  const inner = rest.inner?.flatMap(node => nodeLines(node, depth + 1)) ?? []
  return [`${' '.repeat(9)}${indent}${value.padEnd(10)} ${condition}${actual}`, ...inner]
}
