/** Tokens for that of the agent that calls: it stays the one who acts, with the rights that its provider gives it. */
import type * as oauth from 'oauth4webapi'
import type { CredentialSetting } from '../config/credentials.ts'
import type { Obtain, SourceParts } from './obtain.ts'
import { CredentialError } from './state.ts'
import { parametersOf, tokenIn, tokenResponse } from './token-server.ts'

const tokenType = (name: string): string => `urn:ietf:params:oauth:token-type:${name}`

const subjectTypes = {
  AccessToken: tokenType('access_token'),
  IdToken: tokenType('id_token'),
  Jwt: tokenType('jwt'),
} as const satisfies Record<CredentialSetting['SubjectTokenType'], string>

/** What servers answer to a token that they do not take, or not for this use (RFC 8693 section 2.2.2, RFC 6749 section 5.2). */
const refusals: ReadonlySet<string> = new Set([
  ...['invalid_grant', 'invalid_request', 'invalid_target', 'invalid_scope'],
  ...['access_denied', 'interaction_required', 'consent_required', 'login_required'],
])

/** RFC 8693. */
export const agentTokenExchange: Obtain = async (setting, parts, signal) =>
  tokenIn(await exchanged(setting, parts, { signal, wanted: 'access_token' }), setting)

/**
 * Identity Assertion Authorization Grant (draft-ietf-oauth-identity-assertion-authz-grant): the provider signs for whom the
 * gateway acts, and the server of the resource takes that as a grant (RFC 7523).
 */
export const idJag: Obtain = async (setting, parts, signal) => {
  const { access_token: assertion } = await exchanged(setting, parts, { signal, wanted: 'id-jag' })
  const resource = resourceSettingOf(setting)
  const { scope } = parametersOf(setting)
  const parameters = { assertion, ...(scope === undefined ? {} : { scope }) }
  const asked = { signal, grant: 'urn:ietf:params:oauth:grant-type:jwt-bearer', parameters, refusals }
  return tokenIn(await tokenResponse(resource, parts, asked), setting)
}

/** The client of the gateway at the server of the resource. The secret of the provider's is not sent there. */
function resourceSettingOf(setting: CredentialSetting): CredentialSetting {
  const { Audience, ClientAuth, ClientId, ResourceClientId, ResourceSecret, Secret } = setting
  const isSigned = ClientAuth === 'PrivateKeyJwt'
  const hasSecret = isSigned || ResourceSecret !== undefined
  return {
    ...setting,
    ...{ Issuer: Audience, TokenUrl: undefined, ClientId: ResourceClientId ?? ClientId },
    Secret: ResourceSecret ?? (isSigned ? Secret : undefined),
    ClientAuth: hasSecret ? (ClientAuth === 'None' ? 'Basic' : ClientAuth) : 'None',
  }
}

async function exchanged(
  setting: CredentialSetting,
  parts: SourceParts,
  { signal, wanted }: { readonly signal: AbortSignal; readonly wanted: 'access_token' | 'id-jag' },
): Promise<oauth.TokenEndpointResponse> {
  const { subjectToken } = parts
  if (subjectToken === undefined) throw new CredentialError('needed', 'Each agent gets its own, for its token.')
  // An MCP server names the issuer of its own tokens: for an id-jag that is Audience.
  const provider = wanted === 'id-jag' ? { ...setting, McpServer: undefined } : setting
  const parameters = {
    ...parametersOf(setting),
    ...{ subject_token: subjectToken, subject_token_type: subjectTypes[setting.SubjectTokenType] },
    requested_token_type: tokenType(wanted),
    ...(await actorOf(setting, parts)),
  }
  const grant = 'urn:ietf:params:oauth:grant-type:token-exchange'
  const options = wanted === 'id-jag' ? isNoAccess : undefined
  const answer = await tokenResponse(provider, parts, { signal, grant, parameters, refusals, options })
  const issued = answer['issued_token_type']
  if (wanted === 'id-jag' && issued !== tokenType(wanted))
    throw new CredentialError('failing', 'The provider issued no identity assertion grant (id-jag).')
  return answer
}

/** An assertion is no access token: its `token_type` is `N_A` (RFC 8693 section 2.2.1). */
const isNoAccess = { recognizedTokenTypes: { n_a: () => {} } }

async function actorOf({ ActorToken }: CredentialSetting, { secrets }: SourceParts): Promise<Record<string, string>> {
  if (ActorToken === undefined) return {}
  return { actor_token: await secrets.read(ActorToken), actor_token_type: tokenType('jwt') }
}
