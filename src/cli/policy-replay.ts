import { decisionSettings, readPolicies, soloRulebook, soloRulebooks } from '../policies/language.ts'
import { decideHead } from '../policy/evaluation/decide.ts'
import { explainDescription } from '../policy/evaluation/explain.ts'
import type { Rulebook } from '../policy/evaluation/rulebook.ts'
import { type DescriptionProblem, requestFromDescription } from '../policy/request/describe.ts'
import { type Configuration, configHelp, configOption, readConfiguration } from './configuration.ts'
import { openLines, parseLine, type RequestLine, urlOf } from './log-lines.ts'
import { readOnePolicy } from './one-policy.ts'
import { readArgs, type Shell, UsageError } from './shell.ts'

export const help = `usage: agent-gateway policy replay --policy FILE --log FILE [--all] [--config FILE]

Decides the requests of a log again with a policy that is not in force yet, and prints each decision that changes,
old -> new, with its count. The gateway writes such a log with Logging:Access: a line of JSON for each request.
It has no query, headers or body. Decisions that depend on the body are counted apart. A request that the policy of the
configuration with the same name decides as the new one does counts as unchanged, whatever the log says.
A URL that the gateway refuses before it decides is shown as invalid_target.
A line may contain the whole request instead, as POST /policies/{name}/explain takes it, beside its decision.

  --policy FILE  the policy to try
  --log FILE     the log
  --all          include requests that another policy decided

${configHelp}

Example:
  agent-gateway policy replay --policy policies/support-agent.yaml --log access.log`

const options = {
  ...configOption,
  policy: { type: 'string' },
  log: { type: 'string' },
  all: { type: 'boolean' },
} as const

export async function run(shell: Shell): Promise<number> {
  const { values } = readArgs(shell, options)
  if (values.policy === undefined || values.log === undefined) throw new UsageError('--policy and --log are needed')
  const configuration = readConfiguration(shell, values.config)
  const rulebook = await readRulebook(values.policy, configuration)
  const inForce = await readInForce(configuration)
  const tally: ReplayTally = { same: 0, needBody: 0, skipped: 0, changes: new Map() }
  for await (const text of await openLines(values.log)) {
    const line = parseLine(text)
    if (line?.decision === undefined) continue
    if (values.all !== true && line.policy !== rulebook.policyName) continue
    const decided = decide(rulebook, line)
    const former = inForce(line.policy ?? '')
    // The line lacks what decided then, such as the query, the headers or the risk: with it nothing changes either.
    const isSame = decided !== undefined && former !== undefined && decided === decide(former, line)
    compare(tally, line, isSame && decided !== 'body' ? line.decision : decided)
  }
  report(shell, tally)
  return 0
}

interface ReplayTally {
  same: number
  needBody: number
  skipped: number
  readonly changes: Map<string, number>
}

function compare(tally: ReplayTally, line: RequestLine, decided: string | undefined): void {
  if (decided === undefined) tally.skipped++
  else if (decided === 'body') tally.needBody++
  else if (decided === line.decision) tally.same++
  else {
    const method = line.method ?? line.request?.method ?? 'GET'
    const change = `${line.decision} -> ${decided}  ${method} ${urlOf(line)}`
    tally.changes.set(change, (tally.changes.get(change) ?? 0) + 1)
  }
}

function report(shell: Shell, { same, needBody, skipped, changes }: ReplayTally): void {
  const ranked = [...changes].sort(([, a], [, b]) => b - a)
  for (const [change, times] of ranked) shell.print(`${String(times).padStart(7)} x  ${change}`)
  const changed = ranked.reduce((sum, [, times]) => sum + times, 0)
  shell.print(`${changed} changed, ${same} the same, ${needBody} depend on the body, ${skipped} not understood`)
}

/** The policies of the configuration by name. Those created over the API are not there. */
async function readInForce(configuration: Configuration): Promise<(name: string) => Rulebook | undefined> {
  const { entries } = await readPolicies(configuration.config, configuration.baseDirectory)
  return soloRulebooks(entries, decisionSettings(configuration.config))
}

async function readRulebook(path: string, configuration: Configuration): Promise<Rulebook> {
  return soloRulebook(await readOnePolicy(path, configuration), decisionSettings(configuration.config))
}

/**
 * The decision; `body` when it depends on a body that the line does not have; `invalid_target` when the gateway refuses
 * the URL before it decides; undefined when the line is not a request.
 */
function decide(rulebook: Rulebook, line: RequestLine): string | undefined {
  const { request, agent, time } = line
  if (request !== undefined) {
    const explained = explainDescription(rulebook, { ...line, request }, 0)
    return 'problem' in explained ? refusalOf(explained) : (explained.result.decision ?? 'body')
  }
  const head = { method: line.method ?? 'GET', url: urlOf(line) }
  const whose = agent ?? { id: line.agentId ?? '' }
  const described = requestFromDescription({ request: head, agent: whose, ...(time === undefined ? {} : { time }) }, 0)
  if ('problem' in described) return refusalOf(described)
  const decided = decideHead(rulebook, { ...described.head, contentLength: line.bytesIn ?? 0 })
  return 'need' in decided ? 'body' : decided.decision
}

function refusalOf({ part }: DescriptionProblem): string | undefined {
  return part === 'target' ? 'invalid_target' : undefined
}
