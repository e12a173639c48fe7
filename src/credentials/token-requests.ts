/** Tokens from the servers that issue them, each with one request. */
import { createPrivateKey, type KeyObject } from 'node:crypto'
import * as oauth from 'oauth4webapi'
import type { CredentialSetting } from '../config/credentials.ts'
import { fieldValues, hasContentCoding } from '../http/headers.ts'
import { type AssertionKey, assertionTimes, signAssertion, signatureOf } from '../tokens/assertion.ts'
import type { OwnAnswer } from '../upstream/own-requests.ts'
import { type Obtain, type Obtained, type SourceParts, secretOf, sendable } from './obtain.ts'
import { CredentialError } from './state.ts'

/** Life of a token whose server does not state it, milliseconds. */
const usualLifetimeMs = 3_600_000
const neverAborts = new AbortController().signal
/** Milliseconds. */
const limitOf = ({ TimeoutSeconds }: CredentialSetting): number => TimeoutSeconds * 1_000

/** RFC 6749 section 4.4. */
export const clientCredentials: Obtain = async (setting, parts, signal) => {
  const secret = await parts.secrets.read(secretOf(setting))
  const { server, client } = endpointOf(setting, setting.TokenUrl)
  const options = { [oauth.customFetch]: fetchWith(setting, parts), signal }
  const asked = parametersOf(setting)
  return tokenOf(setting, async () => {
    const authentication = clientAuthentication(setting, secret, parts)
    const answer = await oauth.clientCredentialsGrantRequest(server, client, authentication, asked, options)
    return oauth.processClientCredentialsResponse(server, client, answer)
  })
}

/** RFC 7523 section 2.1. */
export const jwtBearer: Obtain = async (setting, parts, signal) => {
  const account = accountOf(await parts.secrets.read(secretOf(setting)), setting)
  const tokenUrl = setting.TokenUrl ?? account.tokenUrl
  const { server, client } = endpointOf(setting, tokenUrl)
  const options = { [oauth.customFetch]: fetchWith(setting, parts), signal }
  const grant = 'urn:ietf:params:oauth:grant-type:jwt-bearer'
  return tokenOf(setting, async () => {
    const subject = setting.Subject ?? (account.isGoogle ? undefined : account.issuer)
    const claims = { iss: account.issuer, sub: subject, aud: setting.Audience ?? tokenUrl, scope: setting.Scope }
    const asked = { ...parametersOf(setting), assertion: await signAssertion(claims, account, parts.clock.now()) }
    const answer = await oauth.genericTokenEndpointRequest(server, client, unnamedClient, grant, asked, options)
    return oauth.processGenericTokenEndpointResponse(server, client, answer)
  })
}

/** The assertion says who asks. */
const unnamedClient: oauth.ClientAuth = () => {}

/** RFC 8693: the token of a workload, such as that of a service account of Kubernetes, for one of the server. */
export const tokenExchange: Obtain = async (setting, parts, signal) => {
  const subjectToken = await parts.secrets.read(secretOf(setting))
  const { server, client } = endpointOf(setting, setting.TokenUrl)
  const options = { [oauth.customFetch]: fetchWith(setting, parts), signal }
  const grant = 'urn:ietf:params:oauth:grant-type:token-exchange'
  const tokens = {
    ...{ subject_token: subjectToken, subject_token_type: 'urn:ietf:params:oauth:token-type:jwt' },
    requested_token_type: 'urn:ietf:params:oauth:token-type:access_token',
  }
  const asked = { ...parametersOf(setting), ...tokens }
  const exchanged = await tokenOf(setting, async () => {
    const who = setting.ClientId === undefined ? unnamedClient : oauth.None()
    const answer = await oauth.genericTokenEndpointRequest(server, client, who, grant, asked, options)
    return oauth.processGenericTokenEndpointResponse(server, client, answer)
  })
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

/** An assertion names its client itself. */
function endpointOf({ ClientId = 'agent-gateway', Name }: CredentialSetting, tokenUrl: string | undefined) {
  if (tokenUrl === undefined) throw new CredentialError('failing', `TokenUrl must be set for ${Name}.`)
  return { server: { issuer: new URL(tokenUrl).origin, token_endpoint: tokenUrl }, client: { client_id: ClientId } }
}

function parametersOf({ Scope, Audience, Resource, Type }: CredentialSetting): Record<string, string> {
  return {
    ...(Scope === undefined ? {} : { scope: Scope }),
    ...(Resource === undefined ? {} : { resource: Resource }),
    // That of JwtBearer is in its assertion.
    ...(Audience === undefined || Type === 'JwtBearer' ? {} : { audience: Audience }),
  }
}

function clientAuthentication(setting: CredentialSetting, secret: string, { clock }: SourceParts): oauth.ClientAuth {
  if (setting.ClientAuth === 'Basic') return oauth.ClientSecretBasic(secret)
  if (setting.ClientAuth === 'Post') return oauth.ClientSecretPost(secret)
  if (setting.ClientAuth === 'Assertion') return assertedClient(secret)
  const key = privateKey(secret, setting)
  const { webCrypto } = signatureOf(key)
  return oauth.PrivateKeyJwt(key.toCryptoKey(webCrypto, false, ['sign']), {
    [oauth.modifyAssertion]: (_, payload) => {
      const { iat, exp } = assertionTimes(clock.now())
      Object.assign(payload, { iat, nbf: iat, exp })
    },
  })
}

/** RFC 7523 section 2.2: another server has signed who the client is. */
function assertedClient(assertion: string): oauth.ClientAuth {
  return (_, { client_id: id }, form) => {
    form.set('client_id', id)
    form.set('client_assertion_type', 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer')
    form.set('client_assertion', assertion)
  }
}

async function tokenOf(
  setting: CredentialSetting,
  request: () => Promise<oauth.TokenEndpointResponse>,
): Promise<Obtained> {
  const { access_token: token, expires_in: seconds } = await request().catch(error => {
    throw problemOf(error)
  })
  return { value: sendable(token, setting), lifetimeMs: seconds === undefined ? usualLifetimeMs : seconds * 1_000 }
}

/** Codes that no further attempt can change: a person has to grant access again (RFC 6749 section 5.2). */
const needsPerson: ReadonlySet<string> = new Set(['invalid_grant'])

/** Errors of the library about an answer. */
const unusable = [oauth.OperationProcessingError, oauth.WWWAuthenticateChallengeError, oauth.UnsupportedOperationError]

function problemOf(error: unknown): unknown {
  if (error instanceof oauth.ResponseBodyError) {
    const code = /^[\w.-]{1,64}$/.test(error.error) ? error.error : 'an error'
    const kind = needsPerson.has(code) ? 'needed' : 'failing'
    return new CredentialError(kind, `The token server answers ${code} (status ${error.status}).`)
  }
  // Messages of the library say what is wrong with the answer, and never what is in it.
  return error instanceof Error && unusable.some(kind => error instanceof kind)
    ? new CredentialError('failing', `The answer of the token server cannot be used: ${error.message}.`)
    : error
}

type TokenFetch = NonNullable<oauth.TokenEndpointRequestOptions[typeof oauth.customFetch]>

/** The library's requests take the gateway's way to other servers, with its checks of addresses; no redirect is followed. */
function fetchWith(setting: CredentialSetting, { ownRequests }: SourceParts): TokenFetch {
  return async (url, { headers, body = '', signal }) => {
    const fields = [...Object.entries(headers), ['accept-encoding', 'identity']].flat()
    const message = { url, headers: fields, body: String(body) }
    const answer = await ownRequests.ask(message, signal ?? neverAborts, limitOf(setting))
    if (hasContentCoding(answer.fields))
      throw new CredentialError('failing', 'The token server sent a compressed answer.')
    const { status, text } = mended(answer.status, answer.body)
    return new Response(text, { status, headers: { 'content-type': 'application/json' } })
  }
}

/**
 * Answers of servers that differ from RFC 6749 section 5 in ways that are known and harmless: no `token_type`, the life as
 * text, an error with status 200. An id token says nothing about the access.
 */
function mended(status: number, body: Uint8Array): { readonly status: number; readonly text: string } {
  const { id_token: _, ...answer } = jsonOf(body)
  if (status === 200 && typeof answer['error'] === 'string') return { status: 400, text: JSON.stringify(answer) }
  const { expires_in: seconds, token_type: type = 'bearer' } = answer
  const life = typeof seconds === 'string' && /^\d{1,9}$/.test(seconds) ? { expires_in: Number(seconds) } : {}
  return { status, text: JSON.stringify({ ...answer, ...life, token_type: type }) }
}

function jsonOf(body: Uint8Array): Record<string, unknown> {
  try {
    const found: unknown = JSON.parse(Buffer.from(body).toString())
    if (typeof found === 'object' && found !== null) return { ...found }
  } catch {
    // Named below.
  }
  throw new CredentialError('failing', 'The answer of the token server is not JSON.')
}

interface Account extends AssertionKey {
  readonly issuer: string | undefined
  readonly tokenUrl: string | undefined
  readonly isGoogle: boolean
}

/** The key of a service account as Google writes it, or a key alone. */
function accountOf(secret: string, setting: CredentialSetting): Account {
  if (!secret.trimStart().startsWith('{')) return ownAccount(privateKey(secret, setting), undefined, setting)
  const {
    private_key: pem,
    private_key_id: keyId,
    client_email: email,
    token_uri: tokenUrl,
    kid,
  } = jsonOf(Buffer.from(secret))
  if (typeof pem !== 'string') return ownAccount(privateKey(secret, setting), textOrNothing(kid), setting)
  const issuer = setting.ClientId ?? textOrNothing(email)
  return {
    key: privateKey(pem, setting),
    ...{ keyId: textOrNothing(keyId), issuer, tokenUrl: textOrNothing(tokenUrl), isGoogle: true },
  }
}

const ownAccount = (key: KeyObject, keyId: string | undefined, { ClientId }: CredentialSetting): Account => ({
  ...{ key, keyId, issuer: ClientId, tokenUrl: undefined, isGoogle: false },
})

const textOrNothing = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined)

/** A private key as PEM or as a JSON Web Key. */
function privateKey(text: string, { Name }: CredentialSetting): KeyObject {
  try {
    return text.trimStart().startsWith('{')
      ? createPrivateKey({ key: JSON.parse(text), format: 'jwk' })
      : createPrivateKey(text)
  } catch {
    throw new CredentialError('failing', `The secret of ${Name} must be a private key: PEM, or a JSON Web Key.`)
  }
}
