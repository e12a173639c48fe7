/**
 * Which authorization server an MCP server names (RFC 9728), and the client of the gateway there (RFC 7591). The documents come from
 * servers that are not trusted: they are compared with the settings, and never lead to a host that these do not name.
 */
import * as oauth from 'oauth4webapi'
import { clientMetadata } from './client-document.ts'
import { isScope } from './scopes.ts'
import { CredentialError } from './state.ts'
import type { RegisteredClient } from './stored-row.ts'

/** Reads a document, or posts one, past the egress guard and without redirects. */
export type AskDocument = (url: string, body?: string) => Promise<Response>

/** What an MCP server says of itself. */
export interface ProtectedResource {
  readonly issuers: readonly string[]
  readonly scopes: readonly string[]
}

/** Names that a document may list: more are of no use to anybody. */
const maxNames = 64

/** The document of an MCP server: at one of its well-known places, or where its 401 says, on its own origin alone. */
export async function protectedResource(url: string, ask: AskDocument): Promise<ProtectedResource> {
  const resource = new URL(url)
  const found = await documentOf(resource, ask)
  if (found === undefined) throw unusable(url, 'has no document of its authorization server (RFC 9728)')
  const { authorization_servers: issuers, scopes_supported: scopes } = await oauth
    .processResourceDiscoveryResponse(resource, found)
    .catch(() => {
      throw unusable(url, 'has a document of another resource')
    })
  return { issuers: namesIn(issuers, isIssuer), scopes: namesIn(scopes, isScope) }
}

async function documentOf(resource: URL, ask: AskDocument): Promise<Response | undefined> {
  const path = resource.pathname === '/' ? '' : resource.pathname
  const places = [...new Set([`${wellKnown}${path}`, wellKnown])]
  for (const place of places) {
    const answer = await ask(new URL(place, resource).href)
    if (answer.status === 200) return answer
  }
  const { headers } = await ask(resource.href)
  const [, named = ''] = /\bresource_metadata="([^"\s]{1,2000})"/i.exec(headers.get('www-authenticate') ?? '') ?? []
  const place = URL.parse(named)
  if (place?.origin !== resource.origin) return undefined
  const answer = await ask(place.href)
  return answer.status === 200 ? answer : undefined
}

const wellKnown = '/.well-known/oauth-protected-resource'

const namesIn = (list: unknown, isName: (text: string) => boolean): readonly string[] =>
  Array.isArray(list) ? list.filter(name => typeof name === 'string' && isName(name)).slice(0, maxNames) : []

/** RFC 8414 section 2. */
const isIssuer = (text: string): boolean => /^https:\/\/[\x21-\x7e]+$/.test(text) && URL.canParse(text)

/** The settings name the issuer, so that another document of the server cannot lead tokens, or the client's secret, elsewhere. */
export async function assertIssuer(issuer: string, url: string, ask: AskDocument): Promise<void> {
  const { issuers } = await protectedResource(url, ask)
  if (issuers.some(named => URL.parse(named)?.href === new URL(issuer).href)) return
  throw new CredentialError(
    'needed',
    `${url} does not name the authorization server ${issuer} of the settings any more.`,
  )
}

/** RFC 7591: what the gateway is for this server from now on. */
type NewClient = Omit<RegisteredClient, 'issuer' | 'redirectUri'>

interface RegistrationRequest {
  readonly redirectUri: string
  /** Whether the caller can keep a secret. */
  readonly isConfidential: boolean
}

/** Names of RFC 7591 section 2, the best one first. */
const authentications = {
  client_secret_basic: 'Basic',
  client_secret_post: 'Post',
  none: 'None',
} as const satisfies Record<string, NewClient['auth']>

/** RFC 7591: a client for people who consent. */
export async function registeredClient(
  server: oauth.AuthorizationServer,
  { redirectUri, isConfidential }: RegistrationRequest,
  ask: AskDocument,
): Promise<NewClient> {
  if (server.registration_endpoint === undefined) {
    throw new CredentialError('failing', `${server.issuer} registers no clients: get a ClientId from who runs it.`)
  }
  // RFC 8414 section 2 has the usual one.
  const { token_endpoint_auth_methods_supported: supported = ['client_secret_basic'] } = server
  if (!Array.isArray(supported))
    throw new CredentialError('failing', `The document of ${server.issuer} cannot be used.`)
  const wanted = isConfidential ? Object.keys(authentications).find(name => supported.includes(name)) : 'none'
  const metadata = clientMetadata(redirectUri, wanted ?? 'none')
  const answer = await oauth.dynamicClientRegistrationRequest(server, metadata, {
    [oauth.customFetch]: (url, { body }) => ask(url, String(body)),
  })
  const client = await oauth.processDynamicClientRegistrationResponse(answer).catch(() => {
    throw new CredentialError('failing', `${server.issuer} refuses to register a client (status ${answer.status}).`)
  })
  const { token_endpoint_auth_method: method = wanted ?? 'none', client_id: id } = client
  if (!clientName.test(id))
    throw new CredentialError('failing', `${server.issuer} registers a client without a usable id.`)
  const [, auth] = Object.entries(authentications).find(([name]) => name === method) ?? []
  if (!isConfidential && auth !== 'None')
    throw new CredentialError('failing', `${server.issuer} registers no public clients: ${confidential}`)
  if (auth === 'None') return { id, auth, secret: undefined, endsAt: null }
  const { client_secret: secret, client_secret_expires_at: seconds } = client
  if (auth === undefined || typeof secret !== 'string' || !clientName.test(secret))
    throw new CredentialError('failing', `${server.issuer} registers a client that the gateway cannot be.`)
  return { id, auth, secret, endsAt: typeof seconds === 'number' && seconds > 0 ? seconds * 1_000 : null }
}

const confidential =
  'use the type Connect without ClientId, with which the gateway registers itself, or get a ClientId from who runs it.'

/** RFC 6749 appendix A.1: people see it in a terminal, and it stands in the settings. */
const clientName = /^[\x20-\x7e]{1,1000}$/

const unusable = (url: string, what: string): CredentialError => new CredentialError('failing', `${url} ${what}.`)
