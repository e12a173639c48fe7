import type { Drift, DriftedShape } from '../policies/drift.ts'
import { askedIn, askGateway, gatewayHelp, gatewayOptions } from './ask-gateway.ts'
import { configHelp } from './configuration.ts'
import { atHelp } from './gateway-address.ts'
import { jsonHelp, misused, printResult, readArgs, type Shell } from './shell.ts'

export const help = `usage: agent-gateway policy drift NAME [--json] [--at ADDRESS] [--config FILE]

Compares a policy in force with what its agents did, as far as the gateway has recorded it: rules that decided nothing, requests that no rule
covers, rules whose requests people always approve, rules that one of several agents uses, and requests that came no more.

${gatewayHelp}

${jsonHelp}: rules, unused, uncovered, alwaysApproved, ofOneAgent, stopped
${atHelp}
${configHelp}

Example:
  agent-gateway policy drift support-agent`

type DriftAnswer = Omit<Drift, 'uncovered' | 'stopped'> & {
  readonly uncovered: readonly ListedShape[]
  readonly stopped: readonly ListedShape[]
  readonly incompleteSince: string | null
}
type ListedShape = Omit<DriftedShape, 'lastAt'> & { readonly lastAt: string }

export async function run(shell: Shell): Promise<number> {
  const { values, positionals } = readArgs(shell, gatewayOptions, 1)
  const [name = misused('NAME is missing')] = positionals
  const call = { method: 'GET', path: `/policies/${encodeURIComponent(name)}/drift` } as const
  const answer = await askGateway<DriftAnswer>(shell, askedIn(shell, values), call)
  return printResult(shell, values, answer, linesOf(answer))
}

function linesOf(answer: DriftAnswer): readonly string[] {
  const { unused, alwaysApproved, ofOneAgent, uncovered, stopped, incompleteSince } = answer
  const named = (title: string, rules: readonly string[]) =>
    rules.length === 0 ? [] : [`${title}: ${rules.join(', ')}`]
  const listed = (title: string, shapes: readonly ListedShape[]) =>
    shapes.length === 0 ? [] : [title, ...shapes.map(lineOf)]
  const lines = [
    ...named('decided nothing', unused),
    ...named('always approved', alwaysApproved),
    ...named('used by one agent', ofOneAgent),
    ...listed('covered by no rule', uncovered),
    ...listed('came no more for two weeks', stopped),
  ]
  return [
    ...(lines.length === 0 ? ['no drift'] : lines),
    ...(incompleteSince === null ? [] : [`not complete: requests were not recorded since ${incompleteSince}`]),
  ]
}

const lineOf = ({ method, url, count, lastAt, agentId }: ListedShape): string =>
  `${String(count).padStart(7)} x  ${method} ${url}, last ${lastAt.slice(0, 10)}, by ${agentId}`
