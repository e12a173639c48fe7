import { writeFile } from 'node:fs/promises'
import { StartupError } from '../base/refusals.ts'
import { languageOf } from '../policies/language.ts'
import { proposalYaml, tryProposal } from '../policies/proposal.ts'
import type { CompiledPolicy } from '../policy/evaluation/compile.ts'
import { learn, type Observed, type Proposal, type ProposeOptions } from '../policy/propose/learn.ts'
import { narrow } from '../policy/propose/narrow.ts'
import { systemClock } from '../runtime/clock.ts'
import { configHelp, configOption, readConfiguration } from './configuration.ts'
import { openLines } from './log-lines.ts'
import { readOnePolicy } from './one-policy.ts'
import { type RecordedLine, readRecorded } from './recorded-line.ts'
import { readArgs, type Shell, UsageError } from './shell.ts'

export const help = `usage: agent-gateway policy propose --log FILE [--policy FILE] [--agent ID] [--since DAYS] [OPTIONS]

Makes a policy from the requests of a log and prints it as YAML, each rule with its evidence. What was left out goes to
standard error, with the cause. Nothing is put in force: read it, then save it, first as mode: shadow or shadowOf.

Without --policy it allows a request only if one of the same agent was recorded with the same origin, method, tool, model and words
in the path, no further name in the body or the query, and ids of the same class. With --policy it narrows that policy: no request
gets a milder effect than before. Requests that were refused, failed, or had a risk signal such as a secret teach nothing.
Changes are allowed from 3 requests on 2 days on, and otherwise held; DELETE and what people approved stays held.

The gateway writes such a log with Logging:Access; it has no bodies and no queries: only requests without a body make rules, for any query. A line may
contain the whole request instead, as POST /policies/{name}/explain takes it, beside decision, status and verdict.

  --log FILE     the log
  --policy FILE  the policy to narrow
  --agent ID     only this agent; may be repeated
  --since DAYS   only the last days: 7d
  --name NAME    name of the new policy; proposed if absent
  --unseen WHAT  Hitl (if absent) or Deny: what happens to the rest; not with --policy
  --exact        keep every value of a path
  --promote      allow what was approved 10 times and never denied
  --output FILE  write the policy there instead
${configHelp}

Examples:
  agent-gateway policy propose --log access.log --since 7d > proposed.yaml
  agent-gateway policy propose --log requests.jsonl --policy policies/support-agent.yaml`

const options = {
  ...configOption,
  log: { type: 'string' },
  policy: { type: 'string' },
  agent: { type: 'string', multiple: true },
  since: { type: 'string' },
  name: { type: 'string' },
  unseen: { type: 'string' },
  exact: { type: 'boolean' },
  promote: { type: 'boolean' },
  output: { type: 'string' },
} as const

const dayMs = 86_400_000

export async function run(shell: Shell): Promise<number> {
  const { values } = readArgs(shell, options)
  if (values.log === undefined) throw new UsageError('--log is needed')
  const unseen = unseenOf(values.unseen)
  if (values.policy !== undefined && (values.unseen ?? values.name) !== undefined)
    throw new UsageError('--unseen and --name are not for --policy, which keeps its name and default')
  const configuration = readConfiguration(shell, values.config)
  const since = sinceOf(values.since)
  const causes = new Map<string, number>()
  const recorded: RecordedLine[] = []
  for await (const text of await openLines(values.log)) {
    const found = readRecorded(text)
    if (found === undefined || found.at < since) continue
    if (values.agent !== undefined && !values.agent.includes(found.agentId)) continue
    if ('unfit' in found) count(causes, found.unfit)
    else recorded.push(found)
  }
  for (const { ineligible } of recorded) if (ineligible !== undefined) count(causes, ineligible)
  const observed: Observed = { recorded, eligible: recorded.filter(({ ineligible }) => ineligible === undefined) }
  const before = values.policy === undefined ? undefined : await readOnePolicy(values.policy, configuration)
  const choices = { isExact: values.exact === true, promotes: values.promote === true, unseen }
  const proposal = propose(observed, { ...choices, name: values.name ?? 'proposed' }, before)
  const report = tryProposal(proposal, observed, languageOf(configuration.config), before)
  const yaml = proposalYaml(proposal)
  if (values.output === undefined) shell.print(yaml.trimEnd())
  else await writeFile(values.output, yaml)
  shell.complain(`requests: ${observed.eligible.length} used, ${report.allowed} allowed, ${report.held} held`)
  for (const [cause, times] of causes) shell.complain(`left out: ${times} x ${cause}`)
  for (const { code, path, message } of report.warnings) shell.complain(`${path}: ${message} (${code})`)
  return 0
}

function propose(observed: Observed, choices: ProposeOptions & { name: string }, before?: CompiledPolicy): Proposal {
  if (before === undefined) return learn(choices.name, observed, choices)
  const proposal = narrow(before, observed, choices.isExact)
  if (proposal === undefined) throw new StartupError('a priority of the policy is too large: it is doubled')
  return proposal
}

function count(causes: Map<string, number>, cause: string): void {
  causes.set(cause, (causes.get(cause) ?? 0) + 1)
}

function unseenOf(given = 'Hitl'): 'Hitl' | 'Deny' {
  const found = (['Hitl', 'Deny'] as const).find(effect => effect.toLowerCase() === given.toLowerCase())
  if (found === undefined) throw new UsageError('--unseen must be Hitl or Deny')
  return found
}

function sinceOf(given: string | undefined): number {
  if (given === undefined) return 0
  const [, days] = /^(\d{1,4})d$/.exec(given) ?? []
  if (days === undefined) throw new UsageError('--since must be a number of days: 7d')
  return systemClock.now() - Number(days) * dayMs
}
