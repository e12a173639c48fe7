/**
 * Which authorization server an MCP server names (RFC 9728), and the client of the gateway there (RFC 7591). The documents come from
 * servers that are not trusted: they are compared with the settings, and never lead to a host that these do not name.
 */
import * as oauth from 'oauth4webapi'
import { CredentialError } from './state.ts'

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
  return { issuers: namesIn(issuers, isIssuer), scopes: namesIn(scopes, text => scopeToken.test(text)) }
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

/** RFC 6749 section 3.3. */
const scopeToken = /^[\x21\x23-\x5b\x5d-\x7e]{1,200}$/

/** The settings name the issuer, so that another document of the server cannot lead tokens, or the client's secret, elsewhere. */
export async function assertIssuer(issuer: string, url: string, ask: AskDocument): Promise<void> {
  const { issuers } = await protectedResource(url, ask)
  if (issuers.some(named => URL.parse(named)?.href === new URL(issuer).href)) return
  throw new CredentialError(
    'needed',
    `${url} does not name the authorization server ${issuer} of the settings any more.`,
  )
}

/** RFC 7591: a public client for people who consent. Returns its id. */
export async function registeredClient(
  server: oauth.AuthorizationServer,
  redirectUri: string,
  ask: AskDocument,
): Promise<string> {
  if (server.registration_endpoint === undefined) {
    throw new CredentialError('failing', `${server.issuer} registers no clients: get a ClientId from who runs it.`)
  }
  const isLoopback = redirectUri.startsWith('http://127.0.0.1')
  const metadata = {
    ...{ client_name: 'agent-gateway', redirect_uris: [redirectUri], response_types: ['code'] },
    ...{ grant_types: ['authorization_code', 'refresh_token'], token_endpoint_auth_method: 'none' },
    application_type: isLoopback ? 'native' : 'web',
  }
  const answer = await oauth.dynamicClientRegistrationRequest(server, metadata, {
    [oauth.customFetch]: (url, { body }) => ask(url, String(body)),
  })
  const client = await oauth.processDynamicClientRegistrationResponse(answer).catch(() => {
    throw new CredentialError('failing', `${server.issuer} refuses to register a client (status ${answer.status}).`)
  })
  const { token_endpoint_auth_method: method = 'none', client_id: id } = client
  if (!clientName.test(id))
    throw new CredentialError('failing', `${server.issuer} registers a client without a usable id.`)
  if (method === 'none') return id
  throw new CredentialError('failing', `${server.issuer} registers no public clients: get a ClientId from who runs it.`)
}

/** RFC 6749 appendix A.1: people see it in a terminal, and it stands in the settings. */
const clientName = /^[\x20-\x7e]{1,1000}$/

const unusable = (url: string, what: string): CredentialError => new CredentialError('failing', `${url} ${what}.`)
