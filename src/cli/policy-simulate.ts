import type { Simulation } from '../policies/simulate.ts'
import { formatPolicy } from '../policy/language/format.ts'
import { askedIn, askGateway, gatewayHelp, gatewayOptions } from './ask-gateway.ts'
import { configHelp } from './configuration.ts'
import { atHelp } from './gateway-address.ts'
import { readOnePolicy } from './one-policy.ts'
import { jsonHelp, misused, printResult, readArgs, type Shell, UsageError } from './shell.ts'
import { sinceOf } from './since.ts'

export const help = `usage: agent-gateway policy simulate FILE [--agent ID] [--since DAYS] [--fail-on WHAT] [--json] [--at ADDRESS]

Tells what a policy would have made of the requests that the gateway has recorded, beside what the policies in force make of them, and
prints each change with its count, rule and examples. Nothing is put in force. Risk scores and the policy of Policy:Global are left
out. Requests that rest on something that is not recorded, such as a value in the body, are counted apart.

${gatewayHelp}

  --agent ID      only this agent; may be repeated. If absent, all that have a policy of this name
  --since DAYS    only the last days: 7d
  --fail-on WHAT  new-allow, new-deny, new-hitl, or several with commas: exit code 3 when there is such a change
${jsonHelp}: same, unknown, changes, unknownExamples
${atHelp}
${configHelp}

Example:
  agent-gateway policy simulate policies/support-agent.yaml --since 7d --fail-on new-deny,new-allow`

const options = {
  ...gatewayOptions,
  agent: { type: 'string', multiple: true },
  since: { type: 'string' },
  'fail-on': { type: 'string' },
} as const

/** Exit code when --fail-on applies. */
const failed = 3
const failures: Readonly<Record<string, string>> = { 'new-allow': 'Allow', 'new-deny': 'Deny', 'new-hitl': 'Hitl' }

interface SimulationAnswer extends Simulation {
  readonly agentsRead: number
  readonly agentsLeftOut: number
  readonly incompleteSince: string | null
}

export async function run(shell: Shell): Promise<number> {
  const { values, positionals } = readArgs(shell, options, 1)
  const [file = misused('FILE is missing')] = positionals
  const wanted = values['fail-on']?.split(',') ?? []
  const unknown = wanted.find(what => !Object.hasOwn(failures, what))
  if (unknown !== undefined) throw new UsageError(`--fail-on must be of ${Object.keys(failures).join(', ')}`)
  const asked = askedIn(shell, values)
  const since = sinceOf(values.since)
  const body = {
    policy: formatPolicy((await readOnePolicy(file, asked.configuration)).policy),
    ...(values.agent === undefined ? {} : { agentIds: values.agent }),
    ...(since === 0 ? {} : { since: new Date(since).toISOString() }),
  }
  const call = { method: 'POST', path: '/policies/simulate', body } as const
  const answer = await askGateway<SimulationAnswer>(shell, asked, call)
  printResult(shell, values, answer, linesOf(answer))
  const effects = wanted.map(what => failures[what])
  return answer.changes.some(({ after }) => effects.includes(after)) ? failed : 0
}

function linesOf({
  same,
  unknown,
  changes,
  unknownExamples,
  agentsRead,
  agentsLeftOut,
  incompleteSince,
}: SimulationAnswer): readonly string[] {
  const changed = changes.reduce((sum, { count }) => sum + count, 0)
  return [
    ...changes.flatMap(({ before, after, rule, count, agents, examples }) => [
      `${String(count).padStart(7)} x  ${before} -> ${after}  by ${rule ?? 'the default'}, of ${agents.length} agents`,
      ...examples.map(({ method, url, count: times }) => `             ${method} ${url} (${times})`),
    ]),
    `${changed} changed, ${same} the same, ${unknown} not known; ${agentsRead} agents`,
    ...unknownExamples.map(({ method, url, count, fields }) => {
      const rests = fields.length === 0 ? '' : `, rests on ${fields.join(', ')}`
      return `${String(count).padStart(7)} x  not known: ${method} ${url}${rests}`
    }),
    ...(agentsLeftOut === 0 ? [] : [`${agentsLeftOut} more agents were left out: name them with --agent`]),
    ...(incompleteSince === null ? [] : [`not complete: requests were not recorded since ${incompleteSince}`]),
  ]
}
