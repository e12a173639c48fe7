/** Credentials of a running gateway: how they are, and the end of what people granted. */
import type { CredentialView } from '../credentials/view.ts'
import { askedIn, askGateway, gatewayHelp, gatewayOptions } from './ask-gateway.ts'
import { configHelp } from './configuration.ts'
import { atHelp } from './gateway-address.ts'
import { type Command, jsonHelp, misused, printResult, readArgs, type Shell } from './shell.ts'
import { tableLines } from './table.ts'

/** Whose account is meant, of a credential that has several. */
export const accountOptions = { agent: { type: 'string' }, owner: { type: 'string' } } as const

export const accountIn = ({ agent, owner }: { readonly agent?: string; readonly owner?: string }) => ({
  ...(agent !== undefined && { agentId: agent }),
  ...(owner !== undefined && { ownerId: owner }),
})

const usual = `${atHelp}\n${jsonHelp}`

export const listing: Command = {
  help: `usage: agent-gateway credential list [--json] [--at ADDRESS] [--config FILE]

Prints the credentials of Credentials, as the gateway has them. Never a value.
${gatewayHelp}

${usual}: ok, credentials
${configHelp}

Examples:
  agent-gateway credential list --json | jq -r '.credentials[] | select(.state == "needed") | .name'`,
  async run(shell) {
    const { values } = readArgs(shell, gatewayOptions)
    const call = { method: 'GET', path: '/credentials' } as const
    const credentials = await askGateway<readonly CredentialView[]>(shell, askedIn(shell, values), call)
    const head = ['CREDENTIAL', 'TYPE', 'STATE', 'UNTIL', 'LAST USED', 'HOSTS', 'PROBLEM']
    return printResult(shell, values, { ok: true, credentials }, tableLines([head, ...credentials.map(rowOf)]))
  },
}

function rowOf(credential: CredentialView): readonly string[] {
  const { name, type, state, expiresAt, lastUsedAt, hosts, wantedScope } = credential
  const problem = credential.problem ?? (wantedScope && `an upstream wants the scope ${wantedScope}`)
  return [name, type, state, expiresAt ?? '-', lastUsedAt ?? '-', hosts.join(' ') || '-', problem ?? '-']
}

export const testing: Command = {
  help: `usage: agent-gateway credential test NAME [--json] [--at ADDRESS] [--config FILE]

Lets the gateway get a new value now, and says whether it has one. It is on record as credential.renew.
${gatewayHelp}

${usual}: ok, and the credential
${configHelp}

Examples:
  agent-gateway credential test sheets`,
  async run(shell) {
    const { values, positionals } = readArgs(shell, gatewayOptions, 1)
    const call = { method: 'POST', path: `/credentials/${encodeURIComponent(nameIn(positionals))}/renew` } as const
    return printState(shell, values, await askGateway<CredentialView>(shell, askedIn(shell, values), call))
  },
}

/** The exit code. */
export function printState(shell: Shell, values: { readonly json?: boolean }, credential: CredentialView): number {
  const { name, state, usable, problem } = credential
  const ok = usable && problem === null
  if (!ok && values.json !== true) shell.complain(`${name}: ${state}. ${problem ?? 'It has no value.'}`)
  return printResult(shell, values, { ok, ...credential }, ok ? [`${name}: ${state}`] : [])
}

export const disconnecting: Command = {
  help: `usage: agent-gateway credential disconnect NAME [--agent ID | --owner OWNER] [--json] [--at ADDRESS] [--config FILE]

Removes what a person has granted. When it returns, no gateway sends it any more; then it is revoked at its server, if
that says where.
${gatewayHelp}

  --agent ID, --owner OWNER  whose account, with type Connect
${usual}: ok, revoked
${configHelp}

Examples:
  agent-gateway credential disconnect calendar`,
  async run(shell) {
    const { values, positionals } = readArgs(shell, { ...gatewayOptions, ...accountOptions }, 1)
    const name = nameIn(positionals)
    const parts = askedIn(shell, values)
    const path = `/credentials/${encodeURIComponent(name)}/token?${new URLSearchParams(accountIn(values))}`
    const { revoked } = await askGateway<{ readonly revoked: boolean }>(shell, parts, { method: 'DELETE', path })
    const how = revoked
      ? ', and its token revoked.'
      : '. Its server has revoked nothing: revoke the access there by hand.'
    return printResult(shell, values, { ok: true, revoked }, [`${name} is disconnected${how}`])
  },
}

export const nameIn = ([name = misused('name a credential')]: readonly string[]): string => name
