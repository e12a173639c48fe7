import { parseJson } from '../base/json.ts'
import { isObject } from '../base/records.ts'
import { type FieldError, StartupError } from '../base/refusals.ts'
import { requestAdminToken } from './admin-token.ts'
import type { Configuration } from './configuration.ts'
import { callJson, findGateway, type JsonCall } from './gateway-address.ts'
import type { Shell } from './shell.ts'

/** Lines of a help text: how a command finds the gateway, and who it is there. */
export const gatewayHelp = `The token is read from AGENT_GATEWAY_TOKEN; if absent, the credential of the first admin is used.`
export const atHelp = `  --at ADDRESS   address of a gateway, as printed at start: http://HOST:PORT, https://HOST:PORT or unix:PATH;
                 if absent, the address in the configuration`

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
 * @throws StartupError when it is not 200; a GatewayRefusal when the call was wrong
 */
export async function askGateway<T>(
  { env }: Shell,
  { configuration, at, describe = ({ field, message }) => `${field}: ${message}` }: AskParts,
  call: Omit<JsonCall, 'token'>,
): Promise<T> {
  const gateway = await findGateway(configuration, at)
  const token = env['AGENT_GATEWAY_TOKEN'] ?? (await requestAdminToken(configuration, gateway))
  const { status, text } = await callJson(gateway, { ...call, token })
  const answer = parseJson(text)
  // openapi.json describes it.
  if (status === 200 && (isObject(answer) || Array.isArray(answer))) return answer as T
  const { detail = 'Is it the gateway?', errors = [] } = isObject(answer) ? answer : {}
  // openapi.json describes it.
  const lines = (errors as readonly FieldError[]).map(describe)
  const Problem = status >= 400 && status < 500 ? GatewayRefusal : StartupError
  throw new Problem([`${gateway.name} answered ${status}. ${detail}`, ...lines].join('\n  '))
}
