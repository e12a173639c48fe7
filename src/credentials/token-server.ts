/** A server that issues tokens: where it is, who the gateway is there, and what its answers mean. */
import * as oauth from 'oauth4webapi'
import type { CredentialSetting } from '../config/credentials.ts'
import { httpsUrl } from '../config/formats.ts'
import { fieldValues, hasContentCoding } from '../http/headers.ts'
import { assertionTimes, signatureOf } from '../tokens/assertion.ts'
import { privateKey } from './keys.ts'
import { type AskDocument, assertIssuer } from './mcp-server.ts'
import { limitOf, type Obtained, type SourceParts, secretOf, sendable } from './obtain.ts'
import { CredentialError } from './state.ts'

/** Life of a token whose server does not state it, milliseconds. */
const usualLifetimeMs = 3_600_000
const neverAborts = new AbortController().signal

/** A server, and the client that the gateway is there. */
export interface TokenEndpoint {
  readonly server: oauth.AuthorizationServer
  readonly client: oauth.Client
  readonly options: { readonly signal: AbortSignal; readonly [oauth.customFetch]: TokenFetch }
}

interface EndpointOptions {
  readonly signal: AbortSignal
  /** Instead of that of the settings. */
  readonly tokenUrl?: string | undefined
  /** Called with an id token beside an access token. */
  readonly onIdToken?: ((token: unknown) => void) | undefined
}

/** Rejects when the document of the issuer cannot be had. */
export async function endpointOf(
  setting: CredentialSetting,
  parts: SourceParts,
  { signal, tokenUrl = setting.TokenUrl, onIdToken }: EndpointOptions,
): Promise<TokenEndpoint> {
  const { Issuer, Name, ClientId = 'agent-gateway' } = setting
  // An assertion names its client itself.
  const fetch = fetchWith(setting, parts, onIdToken)
  const rest = { client: { client_id: ClientId }, options: { [oauth.customFetch]: fetch, signal } }
  if (tokenUrl !== undefined) {
    return { server: { issuer: new URL(tokenUrl).origin, token_endpoint: tokenUrl }, ...rest }
  }
  if (Issuer === undefined) throw new CredentialError('failing', `TokenUrl must be set for ${Name}.`)
  const key = setting.McpServer === undefined ? Issuer : `${Issuer} ${setting.McpServer}`
  const server =
    parts.servers.get(key) ?? (await serverNamed(Issuer, setting, askWith(parts.ownRequests, signal, limitOf(setting))))
  parts.servers.set(key, server)
  return { server, ...rest }
}

/** An MCP server must name the issuer, too. */
async function serverNamed(issuer: string, { McpServer }: CredentialSetting, ask: AskDocument) {
  if (McpServer !== undefined) await assertIssuer(issuer, McpServer, ask)
  return discovered(issuer, ask)
}

/** OpenID Connect Discovery section 4, or RFC 8414. A document of another issuer is of no use: it would name its own endpoints. */
export async function discovered(issuer: string, ask: AskDocument): Promise<oauth.AuthorizationServer> {
  const expected = new URL(issuer)
  const find = async (algorithm: 'oidc' | 'oauth2') =>
    oauth.processDiscoveryResponse(
      expected,
      await oauth.discoveryRequest(expected, { algorithm, [oauth.customFetch]: url => ask(url) }),
    )
  const server = await find('oidc').catch(() =>
    find('oauth2').catch(error => {
      // An issuer in it that is no address.
      if (error instanceof TypeError) throw new CredentialError('failing', `The document of ${issuer} cannot be used.`)
      throw problemOf(error)
    }),
  )
  const odd = endpoints.find(name => server[name] !== undefined && !isHttps(server[name]))
  if (odd === undefined) return server
  throw new CredentialError('failing', `The document of ${issuer} names no https address as ${odd}.`)
}

const isHttps = (url: unknown): boolean => typeof url === 'string' && httpsUrl(url) === undefined

/** Where people, tokens and secrets go. */
const endpoints = [
  ...(['authorization_endpoint', 'token_endpoint', 'device_authorization_endpoint'] as const),
  ...(['registration_endpoint', 'revocation_endpoint'] as const),
]

/** Documents of servers, past the egress guard, without redirects. @param ms for each, milliseconds */
export function askWith(ownRequests: SourceParts['ownRequests'], signal: AbortSignal, ms: number): AskDocument {
  return async (url, posted) => {
    const headers = ['Accept', 'application/json', 'Accept-Encoding', 'identity']
    if (posted !== undefined) headers.push('Content-Type', 'application/json')
    const method = posted === undefined ? 'GET' : 'POST'
    const { status, fields, body } = await ownRequests.ask({ method, url, headers, body: posted ?? '' }, signal, ms)
    // Others need not be JSON.
    const text = status < 300 || posted !== undefined ? JSON.stringify(jsonOf(body)) : '{}'
    const answer = responseOf(status, text)
    const [challenge] = fieldValues(fields, 'www-authenticate')
    // That of a registration says nothing more than its status.
    if (challenge !== undefined && posted === undefined) answer.headers.set('www-authenticate', challenge)
    return answer
  }
}

/** As the library reads it. Statuses with which a server gives no document are none of its. */
function responseOf(status: number, text: string): Response {
  if (status < 600 && !bodiless.has(status))
    return new Response(text, { status, headers: { 'content-type': 'application/json' } })
  throw new CredentialError('failing', `The server answers with status ${status}.`)
}

const bodiless: ReadonlySet<number> = new Set([204, 205, 304])

export function parametersOf({
  Scope,
  Audience,
  McpServer,
  Resource = McpServer,
  Type,
}: CredentialSetting): Record<string, string> {
  return {
    ...(Scope === undefined ? {} : { scope: Scope }),
    ...(Resource === undefined ? {} : { resource: Resource }),
    // That of JwtBearer is in its assertion.
    ...(Audience === undefined || Type === 'JwtBearer' ? {} : { audience: Audience }),
  }
}

export async function clientAuthentication(
  setting: CredentialSetting,
  { clock, secrets }: SourceParts,
): Promise<oauth.ClientAuth> {
  if (setting.ClientAuth === 'None') return oauth.None()
  const secret = await secrets.read(secretOf(setting))
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

/**
 * The answer of a token server. Rejects with an error that has nothing of the answer in its message.
 *
 * @param refusals codes that no further attempt can change
 */
export const answered = <T>(request: Promise<T>, refusals: ReadonlySet<string> = needsPerson): Promise<T> =>
  request.catch(error => {
    throw problemOf(error, refusals)
  })

interface TokenRequest extends EndpointOptions {
  /** `grant_type`. */
  readonly grant: string
  readonly parameters: Readonly<Record<string, string>>
  /** Absent: as the settings say. */
  readonly authentication?: oauth.ClientAuth
  readonly refusals?: ReadonlySet<string> | undefined
  /** How the answer is read. */
  readonly options?: Parameters<typeof oauth.processGenericTokenEndpointResponse>[3] | undefined
}

/** What a token server gives for a grant (RFC 6749 section 4.5). Rejects as `answered` does. */
export async function tokenResponse(
  setting: CredentialSetting,
  parts: SourceParts,
  { grant, parameters, authentication, refusals, options: processing, ...of }: TokenRequest,
): Promise<oauth.TokenEndpointResponse> {
  const client = authentication ?? (await clientAuthentication(setting, parts))
  const at = await endpointOf(setting, parts, of)
  const request = oauth
    .genericTokenEndpointRequest(at.server, at.client, client, grant, { ...parameters }, at.options)
    .then(answer => oauth.processGenericTokenEndpointResponse(at.server, at.client, answer, processing))
  return answered(request, refusals)
}

/** @param usualMs life of a token whose server does not state it */
export function tokenIn(
  { access_token: token, expires_in: seconds }: oauth.TokenEndpointResponse,
  setting: CredentialSetting,
  usualMs: number = usualLifetimeMs,
): Obtained {
  return { value: sendable(token, setting), lifetimeMs: seconds === undefined ? usualMs : lifeOf(seconds) }
}

/** @param seconds as a server states it: an end must be a date. Returns milliseconds */
export const lifeOf = (seconds: number): number => Math.min(seconds * 1_000, longestLifeMs)

/** 100 years, milliseconds. */
const longestLifeMs = 3_155_760_000_000

/** A person has to grant access again (RFC 6749 section 5.2). */
const needsPerson: ReadonlySet<string> = new Set(['invalid_grant'])

/** Errors of the library about an answer. */
const unusable = [oauth.OperationProcessingError, oauth.WWWAuthenticateChallengeError, oauth.UnsupportedOperationError]

function problemOf(error: unknown, refusals = needsPerson): unknown {
  if (error instanceof oauth.ResponseBodyError) {
    const code = /^[\w.-]{1,64}$/.test(error.error) ? error.error : 'an error'
    const kind = refusals.has(code) ? 'needed' : 'failing'
    return new CredentialError(kind, `The token server answers ${code} (status ${error.status}).`, code)
  }
  // Messages of the library say what is wrong with the answer, and never what is in it.
  return error instanceof Error && unusable.some(kind => error instanceof kind)
    ? new CredentialError('failing', `The answer of the token server cannot be used: ${error.message}.`)
    : error
}

type TokenFetch = NonNullable<oauth.TokenEndpointRequestOptions[typeof oauth.customFetch]>

/** The library's requests take the gateway's way to other servers, with its checks of addresses; no redirect is followed. */
function fetchWith(
  setting: CredentialSetting,
  { ownRequests }: SourceParts,
  onIdToken: EndpointOptions['onIdToken'],
): TokenFetch {
  return async (url, { headers, body = '', signal }) => {
    const fields = [...Object.entries(headers), ['accept-encoding', 'identity']].flat()
    const message = { url, headers: fields, body: String(body) }
    const answer = await ownRequests.ask(message, signal ?? neverAborts, limitOf(setting))
    if (hasContentCoding(answer.fields))
      throw new CredentialError('failing', 'The token server sent a compressed answer.')
    // A revocation is answered without a body (RFC 7009 section 2.2).
    if (answer.status === 200 && answer.body.byteLength === 0) return new Response(null)
    const { status, text } = mended(answer.status, answer.body, onIdToken)
    return responseOf(status, text)
  }
}

/**
 * Answers of servers that differ from RFC 6749 section 5 in ways that are known and harmless: no `token_type`, the life as
 * text, an error with status 200. An id token says nothing about the access.
 */
function mended(
  status: number,
  body: Uint8Array,
  onIdToken: EndpointOptions['onIdToken'],
): { readonly status: number; readonly text: string } {
  const { id_token: idToken, ...answer } = jsonOf(body)
  onIdToken?.(idToken)
  if (status === 200 && typeof answer['error'] === 'string') return { status: 400, text: JSON.stringify(answer) }
  const { expires_in: seconds, token_type: type = 'bearer' } = answer
  const life = typeof seconds === 'string' && /^\d{1,9}$/.test(seconds) ? { expires_in: Number(seconds) } : {}
  return { status, text: JSON.stringify({ ...answer, ...life, token_type: type }) }
}

export function jsonOf(body: Uint8Array): Record<string, unknown> {
  try {
    const found: unknown = JSON.parse(Buffer.from(body).toString())
    if (typeof found === 'object' && found !== null) return { ...found }
  } catch {
    // Named below.
  }
  throw new CredentialError('failing', 'The answer of the token server is not JSON.')
}
