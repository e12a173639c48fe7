/** Refresh tokens that a person grants: in a browser of this machine, or of another one. */
import * as oauth from 'oauth4webapi'
import type { CredentialSetting } from '../config/credentials.ts'
import type { SourceParts } from './obtain.ts'
import { CredentialError } from './state.ts'
import { answered, clientAuthentication, endpointOf, parametersOf, type TokenEndpoint } from './token-server.ts'

export interface ConsentRequest {
  readonly setting: CredentialSetting
  readonly parts: SourceParts
  /** Further parameters of the request for consent, such as `access_type` of Google. */
  readonly more: Readonly<Record<string, string>>
  /** Addresses of a server without a document. */
  readonly authorizationUrl?: string | undefined
  readonly deviceUrl?: string | undefined
  readonly signal: AbortSignal
}

export interface CodeConsent {
  /** What the person opens. */
  readonly url: string
  /** Whether it is the answer to this request: other pages of the machine may call the same address. */
  isAnswer(callback: URL): boolean
  /** The refresh token. Rejects with a CredentialError when the person or the server refuses. */
  finish(callback: URL): Promise<string>
}

/** RFC 8252, with PKCE (RFC 7636), state and `iss` (RFC 9207). */
export async function beginCodeConsent(consent: ConsentRequest, redirectUri: string): Promise<CodeConsent> {
  const { setting, parts } = consent
  const { server, client, options } = await serverOf(consent)
  const url = new URL(endpointIn(server.authorization_endpoint, 'authorization endpoint', '--authorization-url'))
  const [verifier, state] = [oauth.generateRandomCodeVerifier(), oauth.generateRandomState()]
  const asked = {
    ...{ ...consent.more, ...parametersOf(setting), response_type: 'code', client_id: client.client_id },
    ...{ redirect_uri: redirectUri, state, code_challenge_method: 'S256' },
    code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
  }
  for (const [name, value] of Object.entries(asked)) url.searchParams.set(name, value)
  return {
    url: url.href,
    isAnswer: callback => callback.searchParams.get('state') === state,
    async finish(callback) {
      const code = codeIn(callback, { server, client, state })
      const authentication = await clientAuthentication(setting, parts)
      const request = oauth
        .authorizationCodeGrantRequest(server, client, authentication, code, redirectUri, verifier, options)
        .then(answer => oauth.processAuthorizationCodeResponse(server, client, answer))
      return grantedIn(await answered(request), setting)
    },
  }
}

function codeIn(
  callback: URL,
  { server, client, state }: Pick<TokenEndpoint, 'server' | 'client'> & { readonly state: string },
): URLSearchParams {
  try {
    return oauth.validateAuthResponse(server, client, callback, state)
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

/** RFC 8628: the refresh token, once the person has entered the code elsewhere. */
export async function deviceConsent(consent: ConsentRequest, { onPrompt, wait }: DeviceWays): Promise<string> {
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
      return grantedIn(await oauth.processDeviceCodeResponse(server, client, answer), setting)
    } catch (error) {
      const code = error instanceof oauth.ResponseBodyError ? error.error : undefined
      if (code === 'slow_down') pause += usualPause
      else if (code !== 'authorization_pending') await answered(Promise.reject(error))
    }
  }
  throw new CredentialError('needed', 'The code was not entered in time.')
}

async function serverOf(consent: ConsentRequest): Promise<TokenEndpoint> {
  const { setting, parts, signal, authorizationUrl, deviceUrl } = consent
  const found = await endpointOf(setting, parts, { signal })
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
function grantedIn({ refresh_token: token, scope }: oauth.TokenEndpointResponse, { Scope }: CredentialSetting): string {
  const asked = Scope?.split(' ')
  const more = asked === undefined ? [] : (scope ?? '').split(' ').filter(one => one !== '' && !asked.includes(one))
  if (more.length > 0) throw new CredentialError('failing', 'The server granted more scopes than Scope names.')
  if (token !== undefined) return token
  const hint = 'Many need the scope offline_access, Google --param access_type=offline --param prompt=consent.'
  throw new CredentialError('failing', `The server sent no refresh token. ${hint}`)
}
