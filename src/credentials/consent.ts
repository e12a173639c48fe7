/** What a person grants: in a browser of this machine, or of another one. */
import * as oauth from 'oauth4webapi'
import { parseJson } from '../base/json.ts'
import { isObject } from '../base/records.ts'
import type { CredentialSetting } from '../config/credentials.ts'
import { type SourceParts, sendable } from './obtain.ts'
import { CredentialError } from './state.ts'
import type { Granted } from './stored-row.ts'
import { answered, clientAuthentication, endpointOf, lifeOf, parametersOf, type TokenEndpoint } from './token-server.ts'

export interface ConsentRequest {
  readonly setting: CredentialSetting
  readonly parts: SourceParts
  /** Further parameters of the request for consent, such as `access_type` of Google. */
  readonly more: Readonly<Record<string, string>>
  /** Addresses of a server without a document, or instead of those in it. */
  readonly authorizationUrl?: string | undefined
  readonly deviceUrl?: string | undefined
  readonly signal: AbortSignal
  /** Called with what the server has granted, when that is not taken. */
  readonly onUntaken?: ((granted: Granted) => unknown) | undefined
}

/** A consent that was begun: plain data, and a secret until it ends. */
export interface BegunConsent {
  /** What the person opens. */
  readonly url: string
  /** In the answer to this request alone: other pages may call the same address. */
  readonly state: string
  readonly verifier: string
  readonly redirectUri: string
}

/** What a person has granted, and what of it differs from what was asked for. */
export interface Consented extends Granted {
  /** What the server granted; null when it did not say: then it is what was asked for (RFC 6749 section 5.1). */
  readonly scope: string | null
  /** Scopes that were asked for and not granted. */
  readonly missing: readonly string[]
  /** Who the person is at the server, as that says. */
  readonly login: string | null
}

/** RFC 8252 and RFC 9700, with PKCE (RFC 7636), state and `iss` (RFC 9207). */
export async function beginCodeConsent(consent: ConsentRequest, redirectUri: string): Promise<BegunConsent> {
  const { server, client } = await serverOf(consent)
  if (consent.setting.McpServer !== undefined && server.code_challenge_methods_supported?.includes('S256') !== true)
    throw new CredentialError('failing', `${server.issuer} does not say that it knows PKCE with S256, which MCP wants.`)
  const url = new URL(endpointIn(server.authorization_endpoint, 'authorization endpoint', '--authorization-url'))
  const [verifier, state] = [oauth.generateRandomCodeVerifier(), oauth.generateRandomState()]
  const asked = {
    ...{ ...consent.more, ...parametersOf(consent.setting), response_type: 'code', client_id: client.client_id },
    ...{ redirect_uri: redirectUri, state, code_challenge_method: 'S256' },
    code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
  }
  for (const [name, value] of Object.entries(asked)) url.searchParams.set(name, value)
  return { url: url.href, state, verifier, redirectUri }
}

/** @param answer what the browser brought back. Rejects with a CredentialError when the person or the server refuses */
export async function finishCodeConsent(
  consent: ConsentRequest,
  { state, verifier, redirectUri }: Omit<BegunConsent, 'url'>,
  answer: URLSearchParams,
): Promise<Consented> {
  const { setting, parts } = consent
  let idToken: unknown
  const onIdToken = (token: unknown) => {
    idToken = token
  }
  const { server, client, options } = await serverOf(consent, onIdToken)
  const code = codeIn(answer, { server, client, state })
  const authentication = await clientAuthentication(setting, parts)
  const at = parts.clock.now()
  const request = oauth
    .authorizationCodeGrantRequest(server, client, authentication, code, redirectUri, verifier, options)
    .then(answer => oauth.processAuthorizationCodeResponse(server, client, answer))
  return { ...grantedIn(await answered(request), consent, at), login: loginIn(idToken) }
}

function codeIn(
  answer: URLSearchParams,
  { server, client, state }: Pick<TokenEndpoint, 'server' | 'client'> & { readonly state: string },
): URLSearchParams {
  try {
    return oauth.validateAuthResponse(server, client, answer, state)
  } catch (error) {
    const code = error instanceof oauth.AuthorizationResponseError ? error.error : undefined
    if (code === undefined) throw new CredentialError('failing', 'The answer is not that of this server.')
    throw new CredentialError('needed', `The server answers ${/^[\w.-]{1,64}$/.test(code) ? code : 'an error'}.`)
  }
}

export interface DevicePrompt {
  readonly url: string
  readonly code: string
}

interface DeviceWays {
  readonly onPrompt: (prompt: DevicePrompt) => void
  readonly wait: (ms: number) => Promise<unknown>
}

/** Pause between two questions, when the server names none, and what `slow_down` adds (RFC 8628 section 3.5), seconds. */
const usualPause = 5

/** RFC 8628: what was granted, once the person has entered the code elsewhere. */
export async function deviceConsent(consent: ConsentRequest, { onPrompt, wait }: DeviceWays): Promise<Consented> {
  const { setting, parts } = consent
  const { server, client, options } = await serverOf(consent)
  endpointIn(server.device_authorization_endpoint, 'device authorization endpoint', '--device-url')
  const authentication = await clientAuthentication(setting, parts)
  const asked = { ...consent.more, ...parametersOf(setting) }
  const device = await answered(
    oauth
      .deviceAuthorizationRequest(server, client, authentication, asked, options)
      .then(answer => oauth.processDeviceAuthorizationResponse(server, client, answer)),
  )
  onPrompt({ url: device.verification_uri, code: device.user_code })
  let pause = device.interval ?? usualPause
  for (let waited = 0; waited < device.expires_in; waited += pause) {
    await wait(pause * 1_000)
    try {
      const answer = await oauth.deviceCodeGrantRequest(server, client, authentication, device.device_code, options)
      const granted = await oauth.processDeviceCodeResponse(server, client, answer)
      return { ...grantedIn(granted, consent, parts.clock.now()), login: null }
    } catch (error) {
      const code = error instanceof oauth.ResponseBodyError ? error.error : undefined
      if (code === 'slow_down') pause += usualPause
      else if (code !== 'authorization_pending') await answered(Promise.reject(error))
    }
  }
  throw new CredentialError('needed', 'The code was not entered in time.')
}

async function serverOf(consent: ConsentRequest, onIdToken?: (token: unknown) => void): Promise<TokenEndpoint> {
  const { setting, parts, signal, authorizationUrl, deviceUrl } = consent
  const found = await endpointOf(setting, parts, { signal, onIdToken })
  const server = {
    ...found.server,
    ...(authorizationUrl === undefined ? {} : { authorization_endpoint: authorizationUrl }),
    ...(deviceUrl === undefined ? {} : { device_authorization_endpoint: deviceUrl }),
  }
  return { ...found, server }
}

function endpointIn(url: string | undefined, what: string, option: string): string {
  if (url?.startsWith('https://')) return url
  throw new CredentialError('failing', `The document of the server names no ${what}: name it with ${option}.`)
}

/** More than was asked for would be more than the person was shown. */
function grantedIn(
  { refresh_token: refreshToken, access_token: token, expires_in: seconds, scope }: oauth.TokenEndpointResponse,
  { setting, onUntaken }: Pick<ConsentRequest, 'setting' | 'onUntaken'>,
  at: number,
): Omit<Consented, 'login'> {
  const asked = setting.Scope?.split(' ')
  const granted = scope?.split(' ').filter(one => one !== '')
  const more = asked === undefined ? [] : (granted ?? []).filter(one => !asked.includes(one))
  if (more.length > 0) {
    onUntaken?.({ refreshToken, access: { token, at, until: null } })
    throw new CredentialError('failing', 'The server granted more scopes than Scope names.')
  }
  // Many servers answer it with a refresh token alone.
  const isDone = (one: string) => granted?.includes(one) || (one === 'offline_access' && refreshToken !== undefined)
  const missing = granted === undefined ? [] : (asked ?? []).filter(one => !isDone(one))
  const access = { token: sendable(token, setting), at, until: seconds === undefined ? null : at + lifeOf(seconds) }
  return { refreshToken, access, scope: granted?.join(' ') ?? null, missing }
}

/** @throws CredentialError when the grant could not be renewed */
export function refreshTokenIn({ refreshToken }: Granted): string {
  if (refreshToken !== undefined) return refreshToken
  const hint = 'Many need the scope offline_access, Google --param access_type=offline --param prompt=consent.'
  throw new CredentialError('failing', `The server sent no refresh token. ${hint}`)
}

/** For people alone: nothing is decided by it. It came from the server itself, so its signature says nothing more. */
function loginIn(idToken: unknown): string | null {
  const [, payload = ''] = typeof idToken === 'string' ? idToken.split('.') : []
  const claims = parseJson(Buffer.from(payload, 'base64url').toString())
  const { email, preferred_username: name, sub }: Readonly<Record<string, unknown>> = isObject(claims) ? claims : {}
  const login = [email, name, sub].find(one => typeof one === 'string' && one !== '')
  return typeof login === 'string' ? login.slice(0, maxLogin) : null
}

const maxLogin = 200

/** @param pairs NAME=VALUE each */
export const parametersIn = (pairs: readonly string[]): Readonly<Record<string, string>> =>
  Object.fromEntries(
    pairs.map(text => {
      const at = text.indexOf('=')
      return [text.slice(0, at), text.slice(at + 1)]
    }),
  )
