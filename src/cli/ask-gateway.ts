import { parseJson } from '../base/json.ts'
import { isObject } from '../base/records.ts'
import { type FieldError, StartupError } from '../base/refusals.ts'
import { requestAdminToken } from './admin-token.ts'
import { type Configuration, configOption, readConfiguration } from './configuration.ts'
import { callJson, findGateway, type GatewayAddress, type JsonCall } from './gateway-address.ts'
import { jsonOption, type Shell } from './shell.ts'

/** Lines of a help text: who a command is at the gateway. */
export const gatewayHelp = `The token is read from AGENT_GATEWAY_TOKEN; if absent, the credential of the first admin is used.`

export const gatewayOptions = { ...configOption, ...jsonOption, at: { type: 'string' } } as const

/** What these options say. */
export const askedIn = (
  shell: Shell,
  { config, at }: { readonly config?: string; readonly at?: string },
): AskParts => ({
  configuration: readConfiguration(shell, config),
  at,
})

export interface AskParts {
  readonly configuration: Configuration
  /** Undefined: the address in the configuration. */
  readonly at: string | undefined
  /** What people read of a mistake in the body; the field and the message when absent. */
  readonly describe?: (error: FieldError) => string
}

/** The gateway has refused a call, for certain: it did nothing. */
export class GatewayRefusal extends StartupError {}

/**
 * The answer of an operation of the gateway's API, which openapi.json describes.
 *
 * @throws StartupError when it says no success; a GatewayRefusal when the call was wrong
 */
export async function askGateway<T>(
  shell: Shell,
  { configuration, at, describe = ({ field, message }) => `${field}: ${message}` }: AskParts,
  call: Omit<JsonCall, 'token'>,
): Promise<T> {
  const gateway = await findGateway(configuration, at)
  const token = await managementToken(shell, configuration, gateway)
  return answerOf<T>(gateway, { ...call, token }, refused =>
    [failureOf(gateway, call, refused), ...refused.errors.map(describe)].join('\n  '),
  )
}

/** The token with which commands call: that of the caller, else one of the first admin. @throws StartupError */
export async function managementToken(
  { env }: Pick<Shell, 'env'>,
  configuration: Configuration,
  gateway: GatewayAddress,
): Promise<string> {
  return env['AGENT_GATEWAY_TOKEN'] ?? (await requestAdminToken(configuration, gateway))
}

/** Why there is no such answer. */
export interface RefusedCall {
  readonly status: number
  readonly detail: string | undefined
  readonly errors: readonly FieldError[]
}

const unknown = 'Is it the gateway?'

/** The first admin's token is new: one that is not taken is the caller's. */
const callersToken = 'That token is in AGENT_GATEWAY_TOKEN; without this variable the command calls as the first admin.'

const failureOf = (gateway: GatewayAddress, { method, path }: JsonCall, { status, detail = unknown }: RefusedCall) =>
  `${gateway.name} answered ${status} to ${method} ${path.replace(/\?.*/, '')}. ${detail}`

export const whyOf = ({ status, detail }: RefusedCall): string => detail ?? `The server answered ${status}. ${unknown}`

/** What an answer says that is not the wanted one. */
export function refusedIn({ status, text }: { readonly status: number; readonly text: string }): RefusedCall {
  const answer = parseJson(text)
  // The form that a gateway gives to refusals; of another server both are undefined.
  const { detail, errors = [] } = (isObject(answer) ? answer : {}) as Partial<RefusedCall>
  const isCallers = status === 401 && detail !== undefined
  return { status, detail: isCallers ? `${detail} ${callersToken}` : detail, errors }
}

/** The same of a gateway that was found. @param explain what people read when it is not as wanted */
export async function answerOf<T>(
  gateway: GatewayAddress,
  call: JsonCall,
  explain = (refused: RefusedCall) => failureOf(gateway, call, refused),
): Promise<T> {
  const answered = await callJson(gateway, call)
  const { status, text } = answered
  const answer = status >= 200 && status < 300 ? parseJson(text) : undefined
  // openapi.json describes it.
  if (isObject(answer) || Array.isArray(answer)) return answer as T
  const Problem = status >= 400 && status < 500 ? GatewayRefusal : StartupError
  throw new Problem(explain(refusedIn(answered)))
}
