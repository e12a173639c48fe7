import { writeFile } from 'node:fs/promises'
import { StartupError } from '../base/refusals.ts'
import { languageOf } from '../policies/language.ts'
import { proposalYaml, tryProposal } from '../policies/proposal.ts'
import type { MadePolicy } from '../policies/propose.ts'
import type { CompiledPolicy } from '../policy/evaluation/compile.ts'
import { learn, type Proposal, type ProposeOptions } from '../policy/propose/learn.ts'
import { narrow } from '../policy/propose/narrow.ts'
import type { Observed } from '../policy/propose/template.ts'
import { askGateway, gatewayHelp } from './ask-gateway.ts'
import { type Configuration, configHelp, configOption, readConfiguration } from './configuration.ts'
import { atHelp } from './gateway-address.ts'
import { openLines } from './log-lines.ts'
import { readOnePolicy } from './one-policy.ts'
import { type RecordedLine, readRecorded } from './recorded-line.ts'
import { readArgs, type Shell, UsageError } from './shell.ts'
import { sinceOf } from './since.ts'

export const help = `usage: agent-gateway policy propose --agent ID [--since DAYS] [OPTIONS]
       agent-gateway policy propose --log FILE [--policy FILE] [--agent ID] [--since DAYS] [OPTIONS]

Makes a policy from requests that were recorded and prints it as YAML, each rule with its evidence. What was left out goes to
standard error, with the cause. Nothing is put in force: read it, then save it, first as mode: shadow or shadowOf.

The first form asks the running gateway, which counts the shapes of requests. When the agents have one policy it narrows that; no request
gets a milder effect than before. With --learn it makes a new one. ${gatewayHelp}

The second form reads a log and needs no gateway. Without --policy it makes a new policy, with it it narrows that one.
The gateway writes such a log with Logging:Access; it has no bodies and no queries: only requests without a body make rules, for any query. A line may
contain the whole request instead, as POST /policies/{name}/explain takes it, beside decision, status and verdict.

A new policy allows a request only if one of the same agent was recorded with the same origin, method, tool, model and words
in the path, no further name in the body or the query, and ids of the same class. Requests that were refused, failed, or had a risk
signal such as a secret teach nothing. Changes are allowed from 3 requests on 2 days on, and otherwise held; DELETE and what people
approved stays held. Held as well are hosts that were seen on one day only, addresses that are not private, international names and names
that resemble another one: each is named on standard error. Where a policy is narrowed, hosts that its rule names are not.

  --agent ID     only this agent; may be repeated
  --since DAYS   only the last days: 7d
  --log FILE     the log
  --policy NAME  the policy to narrow; with --log its file
  --learn        make a new policy of what the gateway recorded
  --name NAME    name of the new policy; proposed if absent
  --unseen WHAT  Hitl (if absent) or Deny: what a new policy does with the rest
  --exact        keep every value of a path
  --promote      in a new policy, allow what was approved 10 times and never denied
  --tests FILE   write an example of each pattern, and requests that are nearly one, as a test file; not with --log
  --output FILE  write the policy there instead
${atHelp}
${configHelp}

Examples:
  agent-gateway policy propose --agent 9f1c6f0e-52a1-4f3a-8a53-1f6a0c8d7e21 --since 7d > proposed.yaml
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
  learn: { type: 'boolean' },
  tests: { type: 'string' },
  at: { type: 'string' },
  output: { type: 'string' },
} as const

export async function run(shell: Shell): Promise<number> {
  const { values } = readArgs(shell, options)
  const configuration = readConfiguration(shell, values.config)
  const terms: ProposeTerms = {
    ...{ agents: values.agent ?? [], name: values.name, policy: values.policy },
    ...{ isExact: values.exact === true, promotes: values.promote === true },
    ...{ unseen: unseenOf(values.unseen), since: sinceOf(values.since) },
  }
  const isNew = values.learn === true || (values.unseen ?? values.name) !== undefined
  if (isNew && values.policy !== undefined)
    throw new UsageError('--learn, --unseen and --name are not for --policy, which keeps its name and default')
  const read = values.log === undefined ? asking(shell, { configuration, at: values.at, isNew }) : reading(values.log)
  if (values.log !== undefined && values.tests !== undefined) throw new UsageError('--tests is not for --log')
  const made = await read(terms, configuration)
  if (values.output === undefined) shell.print(made.yaml.trimEnd())
  else await writeFile(values.output, made.yaml)
  if (values.tests !== undefined && made.tests !== undefined) await writeFile(values.tests, made.tests)
  const { used, allowed, held, hosts, leftOut, warnings, incompleteSince } = made
  shell.complain(`requests: ${used} used, ${allowed} allowed, ${held} held`)
  if (used > 0 && allowed === 0)
    shell.complain('no request is allowed yet: propose again after another day, or edit the policy')
  for (const { origin, causes } of hosts) shell.complain(`look at ${origin}: ${causes.join(', ')}`)
  for (const { cause, count } of leftOut) shell.complain(`left out: ${count} x ${cause}`)
  if (incompleteSince) shell.complain(`not complete: requests were not recorded since ${incompleteSince}`)
  for (const { code, path, message } of warnings) shell.complain(`${path}: ${message} (${code})`)
  return 0
}

interface ProposeTerms extends ProposeOptions {
  readonly agents: readonly string[]
  readonly name: string | undefined
  readonly policy: string | undefined
  /** Milliseconds since the epoch. */
  readonly since: number
}

type Made = Pick<MadePolicy, 'yaml' | 'used' | 'allowed' | 'held' | 'leftOut' | 'warnings'> &
  Pick<Proposal, 'hosts'> & {
    readonly tests?: string
    readonly incompleteSince?: string | null
  }

interface AskedGateway {
  readonly configuration: Configuration
  readonly at: string | undefined
  readonly isNew: boolean
}

/** From the shapes that the gateway has recorded. */
function asking(shell: Shell, { isNew, ...where }: AskedGateway): (terms: ProposeTerms) => Promise<Made> {
  return ({ agents, name, policy, isExact, promotes, unseen, since }) => {
    if (agents.length === 0) throw new UsageError('--agent or --log is needed')
    const body = {
      agentIds: agents,
      ...(isNew ? { mode: 'learn' } : {}),
      ...(policy === undefined ? {} : { mode: 'narrow', policy }),
      ...(name === undefined ? {} : { name }),
      ...(since === 0 ? {} : { since: new Date(since).toISOString() }),
      ...{ exact: isExact, promote: promotes, unseen },
    }
    return askGateway<Made>(shell, where, { method: 'POST', path: '/policies/propose', body })
  }
}

function reading(log: string): (terms: ProposeTerms, configuration: Configuration) => Promise<Made> {
  return async (terms, configuration) => {
    const causes = new Map<string, number>()
    const recorded: RecordedLine[] = []
    for await (const text of await openLines(log)) {
      const found = readRecorded(text)
      if (found === undefined || found.at < terms.since) continue
      if (terms.agents.length > 0 && !terms.agents.includes(found.agentId)) continue
      if ('unfit' in found) count(causes, found.unfit)
      else recorded.push(found)
    }
    for (const { ineligible } of recorded) if (ineligible !== undefined) count(causes, ineligible)
    const observed: Observed = { recorded, eligible: recorded.filter(({ ineligible }) => ineligible === undefined) }
    const before = terms.policy === undefined ? undefined : await readOnePolicy(terms.policy, configuration)
    const proposal = propose(observed, { ...terms, name: terms.name ?? 'proposed' }, before)
    const report = tryProposal(proposal, observed, languageOf(configuration.config), before)
    const leftOut = [...causes].map(([cause, count]) => ({ cause, count }))
    return { ...report, yaml: proposalYaml(proposal), hosts: proposal.hosts, used: observed.eligible.length, leftOut }
  }
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
