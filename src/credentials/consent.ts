/** What a person grants: in a browser of this machine, or of another one. */
import * as oauth from 'oauth4webapi'
import { parseJson } from '../base/json.ts'
import { isObject } from '../base/records.ts'
import type { CredentialSetting } from '../config/credentials.ts'
import { limitOf, type SourceParts, sendable } from './obtain.ts'
import { CredentialError } from './state.ts'
import { type Granted, revocableOf } from './stored-row.ts'
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
  const url = new URL(
    endpointIn(server.authorization_endpoint, 'authorization endpoint', 'AuthorizationUrl or --authorization-url'),
  )
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
  const { onIdToken, login } = loginReader()
  const { server, client, options } = await serverOf(consent, onIdToken)
  const code = codeIn(answer, { server, client, state })
  const authentication = await clientAuthentication(setting, parts)
  const at = parts.clock.now()
  const request = oauth
    .authorizationCodeGrantRequest(server, client, authentication, code, redirectUri, verifier, options)
    .then(answer => oauth.processAuthorizationCodeResponse(server, client, answer))
  return { ...grantedIn(await answered(request), consent, at), login: login() }
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

/** A consent with a code that the person enters elsewhere (RFC 8628): plain data, and a secret until it ends. */
export interface BegunDevice {
  /** What the person opens, on any machine. */
  readonly url: string
  /** What the person enters there. */
  readonly code: string
  /** What the gateway asks the server with. */
  readonly deviceCode: string
  /** Pause before the next question, seconds. */
  readonly pause: number
  readonly lifeSeconds: number
}

/** Pause between two questions, when the server names none, and what `slow_down` adds (RFC 8628 section 3.5), seconds. */
const usualPause = 5
/** Longest pause after questions that no server has answered, seconds. */
const longestPause = 60
/** More than a code lasts here; timers of browsers, and of this process, do not wait at all when they are asked for weeks, seconds. */
const longestInterval = 3_600

/** Rejects with a CredentialError when the server knows no such codes. */
export async function beginDeviceConsent(consent: ConsentRequest): Promise<BegunDevice> {
  const { setting, parts } = consent
  const { server, client, options } = await serverOf(consent)
  endpointIn(server.device_authorization_endpoint, 'device authorization endpoint', 'DeviceUrl or --device-url')
  const authentication = await clientAuthentication(setting, parts)
  const asked = { ...consent.more, ...parametersOf(setting) }
  const device = await answered(
    oauth
      .deviceAuthorizationRequest(server, client, authentication, asked, options)
      .then(answer => oauth.processDeviceAuthorizationResponse(server, client, answer)),
  )
  const { verification_uri: url, user_code: code, device_code: deviceCode, interval, expires_in: lifeSeconds } = device
  if (!URL.canParse(url) || new URL(url).protocol !== 'https:')
    throw new CredentialError('failing', 'The server names no https address at which the code is entered.')
  const pause = Math.ceil(Math.min(longestInterval, interval ?? usualPause))
  return { url, code, deviceCode, pause, lifeSeconds }
}

/** What was granted; or, until the person has decided, the pause before the next question, seconds. */
export async function askDeviceConsent(
  consent: ConsentRequest,
  { deviceCode, pause }: Pick<BegunDevice, 'deviceCode' | 'pause'>,
): Promise<Consented | number> {
  const { setting, parts } = consent
  const { onIdToken, login } = loginReader()
  const { server, client, options } = await serverOf(consent, onIdToken)
  const authentication = await clientAuthentication(setting, parts)
  let state: unknown
  const request = oauth
    .deviceCodeGrantRequest(server, client, authentication, deviceCode, options)
    .then(answer => oauth.processDeviceCodeResponse(server, client, answer))
    .catch(error => {
      state = error instanceof oauth.ResponseBodyError ? error.error : undefined
      throw error
    })
  try {
    const granted = await answered(request)
    return { ...grantedIn(granted, consent, parts.clock.now()), login: login() }
  } catch (error) {
    if (state === 'authorization_pending') return pause
    if (state === 'slow_down') return pause + usualPause
    if (state === 'expired_token') throw new CredentialError('needed', tooLate)
    if (state === 'access_denied') throw new CredentialError('needed', 'Access was denied at the server.')
    // The server may answer the next one (RFC 8628 section 3.5).
    if (!(error instanceof CredentialError)) return Math.min(longestPause, pause * 2)
    throw error
  }
}

const tooLate = 'The code was not entered in time. Begin again.'

interface DeviceWays {
  readonly onPrompt: (prompt: Pick<BegunDevice, 'url' | 'code'>) => void
  readonly wait: (ms: number) => Promise<unknown>
}

/** The same in one piece: what was granted, once the person has entered the code elsewhere. */
export async function deviceConsent(consent: ConsentRequest, { onPrompt, wait }: DeviceWays): Promise<Consented> {
  const device = await beginDeviceConsent(consent)
  onPrompt(device)
  let { pause } = device
  for (let waited = 0; waited < device.lifeSeconds; waited += pause) {
    await wait(pause * 1_000)
    const found = await askDeviceConsent(consent, { ...device, pause })
    if (typeof found !== 'number') return found
    pause = found
  }
  throw new CredentialError('needed', tooLate)
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

/** Ends a grant that is not taken (RFC 7009). False: its server does not say where. */
export async function revokeGrant(
  { setting, parts }: Pick<ConsentRequest, 'setting' | 'parts'>,
  granted: Granted,
): Promise<boolean> {
  const token = revocableOf(granted, undefined)
  if (token === undefined) return false
  const { revoke } = await import('./token-requests.ts')
  return revoke(setting, parts, { ...token, signal: AbortSignal.timeout(limitOf(setting)) })
}

/** @throws CredentialError when the grant could not be renewed */
export function refreshTokenIn({ refreshToken }: Granted): string {
  if (refreshToken !== undefined) return refreshToken
  const hint = 'Many need the scope offline_access, Google --param access_type=offline --param prompt=consent.'
  throw new CredentialError('failing', `The server sent no refresh token. ${hint}`)
}

function loginReader() {
  let idToken: unknown
  return {
    onIdToken(token: unknown): void {
      idToken = token
    },
    login: () => loginIn(idToken),
  }
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
