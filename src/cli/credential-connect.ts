import { setTimeout as sleep } from 'node:timers/promises'
import { escapeDeceptive } from '../base/deceptive.ts'
import { StartupError } from '../base/refusals.ts'
import type { CredentialSetting } from '../config/credentials.ts'
import { type AccountOf, keyOfAccount } from '../credentials/accounts.ts'
import {
  beginCodeConsent,
  type Consented,
  type ConsentRequest,
  deviceConsent,
  finishCodeConsent,
  parametersIn,
  refreshTokenIn,
  revokeGrant,
} from '../credentials/consent.ts'
import type { SourceParts } from '../credentials/obtain.ts'
import { CredentialError } from '../credentials/state.ts'
import type { Granted } from '../credentials/stored-row.ts'
import type { AccountView, CredentialView } from '../credentials/view.ts'
import { type AskParts, askedIn, askGateway, GatewayRefusal, gatewayHelp, gatewayOptions } from './ask-gateway.ts'
import { type Configuration, configHelp, nameOfFile } from './configuration.ts'
import { accountIn, accountOptions, nameIn, printState } from './credential.ts'
import { atHelp } from './gateway-address.ts'
import { openLoopback } from './loopback.ts'
import { jsonHelp, printResult, readArgs, type Shell, UsageError } from './shell.ts'
import { upstreamsOf } from './upstreams.ts'

export const help = `usage: agent-gateway credential connect NAME [--agent ID | --owner OWNER] [--device] [--port PORT] [--param NAME=VALUE]... [--json] [--at ADDRESS] [--config FILE]

Lets you grant a credential of type RefreshToken or Connect access to your account: it prints an address, and waits until you have
consented there. Then the gateway has the refresh token, and this machine keeps none. Run it where the gateway runs, since it
needs the settings and the secret of the client. ${gatewayHelp}

  --agent ID, --owner OWNER  whose account it is, with type Connect
  --device       for a browser on another machine: prints an address and a code to enter there
  --port PORT    port at 127.0.0.1 that the browser comes back to, if the server wants a fixed one (http://127.0.0.1:PORT/callback)
  --param NAME=VALUE  further parameter of the request for consent, such as access_type=offline for Google; repeatable
  --authorization-url URL, --device-url URL  where a server without a document (Issuer) has these
${atHelp}
${jsonHelp}: ok, and the credential
${configHelp}

Examples:
  agent-gateway credential connect calendar
  agent-gateway credential connect mail --agent 7f3c1c39-3a0b-4c53-9d0b-5c0f9d7f3f10 --device
  agent-gateway credential connect drive --param access_type=offline --param prompt=consent`

const options = {
  ...gatewayOptions,
  ...accountOptions,
  device: { type: 'boolean' },
  port: { type: 'string' },
  param: { type: 'string', multiple: true },
  'authorization-url': { type: 'string' },
  'device-url': { type: 'string' },
} as const

/** Time that a person has, milliseconds. */
const consentMs = 600_000

export async function run(shell: Shell): Promise<number> {
  const { values, positionals } = readArgs(shell, options, 1)
  const name = nameIn(positionals)
  const port = Number(values.port ?? 0)
  if (!Number.isInteger(port) || port < 0 || port > 65_535) throw new UsageError('--port must be a port')
  const given = { more: paramsIn(values.param ?? []), port, isDevice: values.device === true }
  const parts = askedIn(shell, values)
  const { configuration } = parts
  const urls = { authorizationUrl: values['authorization-url'], deviceUrl: values['device-url'] }
  const account = accountIn(values)
  const setting = settingOf(name, configuration, account)
  const asked = { parts, shell, setting }
  const isConnected = await hasGrant(asked)
  const stored = await withServers(shell, configuration, async servers => {
    let granted: Granted | undefined
    const onUntaken = (untaken: Granted) => {
      granted = untaken
    }
    const consent = { ...consentOf(setting, servers, { ...given, ...urls }), onUntaken }
    try {
      const consented = await consentIn(consent, shell, given)
      granted = consented
      const body = { refreshToken: refreshTokenIn(consented), ...account }
      return await askGateway<object>(shell, asked.parts, { method: 'PUT', path: `${pathOf(name)}/token`, body })
    } catch (error) {
      if (!(error instanceof GatewayRefusal || error instanceof CredentialError)) throw error
      if (granted === undefined) throw new StartupError(error.message)
      const lost = granted
      const end = isConnected ? undefined : () => revokeGrant(consent, lost)
      throw new StartupError(`${error.message}\n${await withdrawn(setting, end)}`)
    }
  })
  if ('connectedBy' in stored) {
    return printResult(shell, values, { ok: true, ...stored }, [`${name} is connected.`])
  }
  const path = `${pathOf(name)}/renew`
  return printState(shell, values, await askGateway<CredentialView>(shell, asked.parts, { method: 'POST', path }))
}

const pathOf = (name: string): string => `/credentials/${encodeURIComponent(name)}`

interface AskedOf {
  readonly parts: AskParts
  readonly shell: Shell
  readonly setting: CredentialSetting
}

/** Whether a grant may be there already. Asked before anybody consents, so that a gateway that is away or refuses says so at once. */
async function hasGrant({ parts, shell, setting }: AskedOf): Promise<boolean> {
  const path = pathOf(setting.Name ?? '')
  const { state } = await askGateway<CredentialView>(shell, parts, { method: 'GET', path })
  if (setting.Type !== 'Connect') return state !== 'needed' && state !== 'unused'
  const accounts = await askGateway<readonly AccountView[]>(shell, parts, { method: 'GET', path: `${path}/accounts` })
  return accounts.some(account => account.state !== 'needed')
}

/** What became of a grant that was not taken. @param end undefined: some servers would end the grant, too, that is in use */
async function withdrawn(
  { Issuer, TokenUrl, ClientId }: CredentialSetting,
  end: (() => Promise<boolean>) | undefined,
): Promise<string> {
  const server = new URL(Issuer ?? TokenUrl ?? '').host
  if (end !== undefined && (await end().catch(() => false))) return `The grant was revoked at ${server}.`
  return `${server} still has your grant: remove the access of ${ClientId} in the settings of your account there.`
}

function paramsIn(params: readonly string[]): Readonly<Record<string, string>> {
  if (params.some(text => text.indexOf('=') < 1)) throw new UsageError('--param must be NAME=VALUE')
  return parametersIn(params)
}

function settingOf(name: string, configuration: Configuration, account: AccountOf): CredentialSetting {
  const setting = configuration.config.Credentials.find(({ Name }) => Name === name)
  if (setting?.Type !== 'RefreshToken' && setting?.Type !== 'Connect')
    throw new StartupError(`${name} is no credential of type RefreshToken or Connect in ${nameOfFile(configuration)}.`)
  if (setting.ClientId === undefined)
    throw new StartupError(`${name} has no ClientId: connect the account in the console.`)
  // A person who has consented would have to do it again.
  if (!isAccountOf(setting, account)) throw new UsageError(usageOf(setting))
  return setting
}

/** What the gateway's own requests need, as long as `use` takes. */
async function withServers<T>(
  { env }: Shell,
  configuration: Configuration,
  use: (parts: SourceParts) => Promise<T>,
): Promise<T> {
  const upstreams = await upstreamsOf(configuration, env)
  try {
    const parts = upstreams.keptCredentials?.sourceParts
    if (parts === undefined) throw new Error('cannot happen: a command has no other threads')
    return await use(parts)
  } finally {
    await upstreams.close()
  }
}

const consentOf = (
  setting: CredentialSetting,
  parts: SourceParts,
  {
    more,
    authorizationUrl = setting.AuthorizationUrl,
    deviceUrl = setting.DeviceUrl,
  }: Pick<ConsentRequest, 'more' | 'authorizationUrl' | 'deviceUrl'>,
): ConsentRequest => ({
  ...{ setting, parts, authorizationUrl, deviceUrl, signal: AbortSignal.timeout(consentMs) },
  more: { ...parametersIn(setting.Parameters), ...more },
})

function consentIn(
  consent: ConsentRequest,
  shell: Shell,
  { port, isDevice }: { readonly port: number; readonly isDevice: boolean },
): Promise<Consented> {
  if (!isDevice) return inBrowser(consent, shell, port)
  const onPrompt = ({ url, code }: { readonly url: string; readonly code: string }) =>
    shell.complain(`Open ${escapeDeceptive(url)} and enter ${escapeDeceptive(code)}`)
  return deviceConsent(consent, { onPrompt, wait: ms => sleep(ms) })
}

/** The gateway alone knows which agents are there. */
const isAccountOf = (setting: CredentialSetting, { agentId, ownerId }: AccountOf): boolean =>
  setting.Type === 'Connect'
    ? keyOfAccount(setting, { agentId, ownerId }, id => ({ id, ownerId: '', createdAt: 0 })) !== undefined
    : (agentId ?? ownerId) === undefined

function usageOf({ Name, Type, Per }: CredentialSetting): string {
  if (Type === 'Connect' && Per === 'Agent') return `${Name} has accounts of agents: name one with --agent`
  if (Type === 'Connect' && Per === 'Owner') return `${Name} has accounts of owners: name one with --owner or --agent`
  return `${Name} is one for all agents: give neither --agent nor --owner`
}

async function inBrowser(consent: ConsentRequest, shell: Shell, port: number): Promise<Consented> {
  const loopback = await openLoopback(port)
  try {
    const begun = await beginCodeConsent(consent, loopback.redirectUri)
    shell.complain(`Open this address in a browser of this machine, and consent:\n\n${begun.url}\n`)
    const isAnswer = ({ searchParams }: URL) => searchParams.get('state') === begun.state
    return await finishCodeConsent(consent, begun, (await loopback.answer(isAnswer, consent.signal)).searchParams)
  } finally {
    loopback.close()
  }
}
