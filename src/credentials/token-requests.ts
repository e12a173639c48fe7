/** Tokens from the servers that issue them, each with one request. */
import * as oauth from 'oauth4webapi'
import type { CredentialSetting } from '../config/credentials.ts'
import { fieldValues } from '../http/headers.ts'
import { signAssertion } from '../tokens/assertion.ts'
import type { OwnAnswer } from '../upstream/own-requests.ts'
import { accountOf, privateKey } from './keys.ts'
import { limitOf, type Obtain, type Obtained, type SourceParts, secretOf, sendable } from './obtain.ts'
import { CredentialError } from './state.ts'
import type { Revocable } from './stored-row.ts'
import {
  answered,
  clientAuthentication,
  endpointOf,
  jsonOf,
  parametersOf,
  tokenIn,
  tokenResponse,
} from './token-server.ts'

/** RFC 6749 section 4.4. */
export const clientCredentials: Obtain = async (setting, parts, signal) =>
  tokenIn(
    await tokenResponse(setting, parts, { signal, grant: 'client_credentials', parameters: parametersOf(setting) }),
    setting,
  )

/** RFC 7523 section 2.1. */
export const jwtBearer: Obtain = async (setting, parts, signal) => {
  const account = accountOf(await parts.secrets.read(secretOf(setting)), setting)
  const tokenUrl = setting.TokenUrl ?? (setting.Issuer === undefined ? account.tokenUrl : undefined)
  const { server } = await endpointOf(setting, parts, { signal, tokenUrl })
  const grant = 'urn:ietf:params:oauth:grant-type:jwt-bearer'
  const subject = setting.Subject ?? (account.isGoogle ? undefined : account.issuer)
  const aud = setting.Audience ?? server.token_endpoint
  const claims = { iss: account.issuer, sub: subject, aud, scope: setting.Scope }
  const parameters = { ...parametersOf(setting), assertion: await signAssertion(claims, account, parts.clock.now()) }
  const asked = { signal, tokenUrl, grant, parameters, authentication: unnamedClient }
  return tokenIn(await tokenResponse(setting, parts, asked), setting)
}

/** The assertion says who asks. */
const unnamedClient: oauth.ClientAuth = () => {}

/** RFC 8693: the token of a workload, such as that of a service account of Kubernetes, for one of the server. */
export const tokenExchange: Obtain = async (setting, parts, signal) => {
  const subjectToken = await parts.secrets.read(secretOf(setting))
  const grant = 'urn:ietf:params:oauth:grant-type:token-exchange'
  const parameters = {
    ...parametersOf(setting),
    ...{ subject_token: subjectToken, subject_token_type: 'urn:ietf:params:oauth:token-type:jwt' },
    requested_token_type: 'urn:ietf:params:oauth:token-type:access_token',
  }
  const authentication = setting.ClientId === undefined ? unnamedClient : oauth.None()
  const exchanged = tokenIn(await tokenResponse(setting, parts, { signal, grant, parameters, authentication }), setting)
  return setting.Subject === undefined ? exchanged : serviceAccount(setting, parts, { signal, token: exchanged.value })
}

/** Acts for a service account: https://docs.cloud.google.com/iam/docs/reference/credentials/rest/v1/projects.serviceAccounts/generateAccessToken */
async function serviceAccount(
  setting: CredentialSetting,
  { ownRequests, clock }: SourceParts,
  { signal, token }: { readonly signal: AbortSignal; readonly token: string },
): Promise<Obtained> {
  const name = encodeURIComponent(setting.Subject ?? '')
  const url = `https://iamcredentials.googleapis.com/v1/projects/-/serviceAccounts/${name}:generateAccessToken`
  const headers = ['Content-Type', 'application/json', 'Authorization', `Bearer ${token}`]
  const body = JSON.stringify({ scope: (setting.Scope ?? '').split(' ') })
  const answer = await ownRequests.ask({ url, headers, body }, signal, limitOf(setting))
  if (answer.status !== 200) throw new CredentialError('failing', `Google answers with status ${answer.status}.`)
  const { accessToken, expireTime } = jsonOf(answer.body)
  return endingToken(accessToken, { end: expireTime, answer, now: clock.now(), setting })
}

/** An installation of a GitHub App: https://docs.github.com/rest/apps/apps#create-an-installation-access-token-for-an-app */
export const gitHubApp: Obtain = async (setting, parts, signal) => {
  const key = privateKey(await parts.secrets.read(secretOf(setting)), setting)
  const assertion = await signAssertion({ iss: setting.ClientId }, { key, keyId: undefined }, parts.clock.now())
  const url = setting.TokenUrl ?? `https://api.github.com/app/installations/${setting.Subject}/access_tokens`
  const headers = ['Accept', 'application/vnd.github+json', 'Authorization', `Bearer ${assertion}`]
  const message = { url, headers: [...headers, 'User-Agent', 'agent-gateway'], body: '' }
  const answer = await parts.ownRequests.ask(message, signal, limitOf(setting))
  if (answer.status === 404) throw new CredentialError('needed', `There is no installation ${setting.Subject}.`)
  if (answer.status !== 201) throw new CredentialError('failing', `GitHub answers with status ${answer.status}.`)
  const { token, expires_at: end } = jsonOf(answer.body)
  return endingToken(token, { end, answer, now: parts.clock.now(), setting })
}

interface DatedToken {
  /** Date of the end, as the server writes it. */
  readonly end: unknown
  readonly answer: OwnAnswer
  readonly now: number
  readonly setting: CredentialSetting
}

/** A token whose end is a date of the server's clock. */
function endingToken(token: unknown, { end, answer, now, setting }: DatedToken): Obtained {
  const [sentAt] = fieldValues(answer.fields, 'date')
  const lifetimeMs = Date.parse(String(end)) - (Date.parse(sentAt ?? '') || now)
  if (typeof token === 'string' && lifetimeMs > 0) return { value: sendable(token, setting), lifetimeMs }
  throw new CredentialError('failing', `The server of ${setting.Name} sent no token that lasts.`)
}

/** What a refresh token was exchanged for. */
export interface Redeemed extends Obtained {
  /** Undefined when the one that was sent stays valid. */
  readonly refreshToken: string | undefined
}

/** RFC 6749 section 6. A token whose life the server does not state is sent until it is refused. */
export async function redeem(
  setting: CredentialSetting,
  parts: SourceParts,
  { refreshToken, signal }: { readonly refreshToken: string; readonly signal: AbortSignal },
): Promise<Redeemed> {
  const parameters = { ...parametersOf(setting), refresh_token: refreshToken }
  const answer = await tokenResponse(setting, parts, { signal, grant: 'refresh_token', parameters })
  const next = answer.refresh_token
  return {
    ...tokenIn(answer, setting, Number.POSITIVE_INFINITY),
    refreshToken: next === refreshToken ? undefined : next,
  }
}

/** RFC 7009. False when the server has no address for it. */
export async function revoke(
  setting: CredentialSetting,
  parts: SourceParts,
  { token, hint, signal }: Revocable & { readonly signal: AbortSignal },
): Promise<boolean> {
  const { server, client, options } = await endpointOf(setting, parts, { signal })
  if (server.revocation_endpoint === undefined) return false
  const authentication = await clientAuthentication(setting, parts)
  const asked = { ...options, additionalParameters: { token_type_hint: hint } }
  const request = oauth
    .revocationRequest(server, client, authentication, token, asked)
    .then(answer => oauth.processRevocationResponse(answer))
  await answered(request)
  return true
}
