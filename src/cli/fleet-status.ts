import { setTimeout as sleep } from 'node:timers/promises'
import type { MemberView } from '../fleet/view.ts'
import { answerOf, askedIn, gatewayHelp, gatewayOptions, managementToken } from './ask-gateway.ts'
import { configHelp } from './configuration.ts'
import { atHelp, findGateway, type GatewayAddress } from './gateway-address.ts'
import { jsonHelp, printResult, readArgs, type Shell, UsageError } from './shell.ts'
import { tableLines } from './table.ts'

export const help = `usage: agent-gateway fleet status [--members N] [--json] [--at ADDRESS] [--config FILE]

Prints the gateways that share the database, as the gateway that is asked sees them; * marks that one.
Exit code 0 when all of them serve and have the changes of 2 seconds ago, else 1.
${gatewayHelp}

  --members N    fewer gateways than N are a failure too
${atHelp}
${jsonHelp}: ok, newest, members, problems
${configHelp}

Examples:
  agent-gateway fleet status --members 3
  agent-gateway fleet status --json | jq -r '.members[] | select(.state != "Serving") | .name'`

const options = { ...gatewayOptions, members: { type: 'string' } } as const

type TimeName = 'startedAt' | 'lastSeenAt'
type ShownMember = Omit<MemberView, TimeName> & Readonly<Record<TimeName, string>>

interface FleetReport {
  readonly newest: number
  readonly members: readonly ShownMember[]
}

/** Changes reach all gateways in milliseconds: one that lacks some after this is behind, milliseconds. */
const usualMs = 2_000

export async function run(shell: Shell): Promise<number> {
  const { values } = readArgs(shell, options)
  const wanted = countOf(values.members)
  const { configuration, at } = askedIn(shell, values)
  const gateway = await findGateway(configuration, at)
  const token = await managementToken(shell, configuration, gateway)
  const first = await readFleet(gateway, token)
  // While changes are made, each gateway is always some milliseconds behind.
  const isLagging = first.members.some(({ lag }) => lag !== 0)
  if (isLagging) await sleep(usualMs)
  const { newest, members } = isLagging ? await readFleet(gateway, token) : first
  const since = newest - first.newest
  const problems = [...missing(members, wanted), ...members.flatMap(member => problemsOf(member, since))]
  const ok = problems.length === 0
  const code = printResult(shell, values, { ok, newest, members, problems }, table(members))
  if (values.json !== true) for (const problem of problems) shell.complain(problem)
  return code
}

function countOf(given: string | undefined): number {
  if (given !== undefined && !/^[1-9]\d{0,3}$/.test(given)) throw new UsageError('--members must be a number')
  return Number(given ?? 1)
}

const readFleet = (gateway: GatewayAddress, token: string): Promise<FleetReport> =>
  answerOf(gateway, { method: 'GET', path: '/fleet', token })

function missing({ length }: readonly ShownMember[], wanted: number): readonly string[] {
  return length < wanted ? [`${wanted - length} of ${wanted} gateways are missing`] : []
}

/** @param since changes of the last 2 seconds */
function problemsOf({ name, state, lag }: ShownMember, since: number): readonly string[] {
  if (state !== 'Serving') return [`${name} is not known to serve: it is ${state}`]
  return lag !== null && lag > since ? [`${name} lacks ${lag} changes`] : []
}

function table(members: readonly ShownMember[]): readonly string[] {
  const head = ['GATEWAY', 'STATE', 'LAG', 'LAST SEEN', 'VERSION', 'STARTED', 'ADDRESSES', 'DIFFERS IN']
  const rows = members.map(({ name, isThis, state, lag, lastSeenAt, version, startedAt, addresses, differs }) => [
    `${name}${isThis ? ' *' : ''}`,
    state,
    lag === null ? '-' : String(lag),
    lastSeenAt,
    version,
    startedAt,
    addresses.join(' ') || '-',
    differs.join(', ') || '-',
  ])
  return tableLines([head, ...rows])
}
