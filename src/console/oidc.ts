/**
 * Sign-in at the identity provider: authorization code with PKCE (RFC 7636). What must outlast the way there and back is
 * in sessionStorage, and gone when it is used.
 */
import type { Failure } from './api.ts'
import { base64url, digestOf } from './digest.ts'
import { keepDrafts } from './drafts.ts'
import { signInWithToken } from './session.ts'

export interface Provider {
  readonly authority: string
  readonly clientId: string
  readonly scope: string
}

interface Pending {
  readonly state: string
  readonly verifier: string
  readonly tokenEndpoint: string
  /** Where the person wanted to go. */
  readonly hash: string
}

const storageKey = 'sign-in'

/** What the gateway says of it; undefined when people do not sign in there. */
export const provider = read()

function read(): Provider | undefined {
  const text = document.querySelector<HTMLMetaElement>('meta[name="provider"]')?.content
  return text === undefined ? undefined : JSON.parse(text)
}

const redirectUri = (): string => location.origin + location.pathname

const refused = (detail: string): Failure => ({ status: 400, code: 'provider', detail, problem: {} })

/** Leaves for the provider. Resolves only when it cannot be reached. */
export async function leaveForProvider({ authority, clientId, scope }: Provider): Promise<Failure> {
  const known = await fetchJson(`${authority.replace(/\/$/, '')}/.well-known/openid-configuration`)
  const { authorization_endpoint: endpoint, token_endpoint: tokenEndpoint } = known ?? {}
  if (typeof endpoint !== 'string' || typeof tokenEndpoint !== 'string') {
    return refused('The identity provider does not answer, or does not let this page read its answer (CORS).')
  }
  const pending: Pending = { state: random(), verifier: random(), tokenEndpoint, hash: location.hash }
  sessionStorage.setItem(storageKey, JSON.stringify(pending))
  keepDrafts()
  const url = new URL(endpoint)
  const asked = {
    response_type: 'code',
    client_id: clientId,
    redirect_uri: redirectUri(),
    scope,
    state: pending.state,
    code_challenge: await digestOf(pending.verifier),
    code_challenge_method: 'S256',
  }
  for (const [name, value] of Object.entries(asked)) url.searchParams.set(name, value)
  location.assign(url)
  return new Promise(() => {})
}

/** Ends a sign-in with which the provider sent the person back; undefined when there is none. */
export async function returnFromProvider(): Promise<{ readonly failure: Failure | undefined } | undefined> {
  const answer = new URLSearchParams(location.search)
  const state = answer.get('state')
  const text = sessionStorage.getItem(storageKey)
  if (provider === undefined || state === null) return undefined
  sessionStorage.removeItem(storageKey)
  const pending: Pending | undefined = text === null ? undefined : JSON.parse(text)
  history.replaceState(null, '', location.pathname + (pending?.hash || '#/'))
  if (pending?.state !== state) return { failure: refused('This sign-in was not begun in this tab. Try again.') }
  const code = answer.get('code')
  if (code === null)
    return { failure: refused(`The identity provider refused: ${answer.get('error') ?? 'no code came'}.`) }
  return { failure: await exchange(pending, code, provider.clientId) }
}

async function exchange(
  { tokenEndpoint, verifier }: Pending,
  code: string,
  clientId: string,
): Promise<Failure | undefined> {
  const body = new URLSearchParams({
    grant_type: 'authorization_code',
    code,
    redirect_uri: redirectUri(),
    client_id: clientId,
    code_verifier: verifier,
  })
  const token = (await fetchJson(tokenEndpoint, { method: 'POST', body }))?.['access_token']
  if (typeof token !== 'string') return refused('The identity provider gave no token.')
  const failure = await signInWithToken(token)
  return failure?.status === 401 ? refused('No agent of this gateway is bound to you. Ask an admin.') : failure
}

async function fetchJson(url: string, init: RequestInit = {}): Promise<Readonly<Record<string, unknown>> | undefined> {
  try {
    const answer = await fetch(url, { ...init, credentials: 'omit', redirect: 'error', cache: 'no-store' })
    return answer.ok ? await answer.json() : undefined
  } catch {
    return undefined
  }
}

const random = (): string => base64url(crypto.getRandomValues(new Uint8Array(32)))
