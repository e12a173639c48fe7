import type { CredentialSetting } from './credentials.ts'
import {
  credentialHeader,
  credentialName,
  credentialPrefix,
  hostAndPort,
  pathPrefix,
  privateFile,
  queryName,
  uuid,
  variableName,
} from './formats.ts'
import { boolean, choice, entriesProblem, list, objects, optional, type SettingValues, text } from './setting.ts'

export const upstreams = objects(
  {
    Host: optional(
      'Host that gets the credential: a name or pattern, with :port unless it is the usual one.',
      hostAndPort,
    ),
    Paths: list('Path prefixes that get it; empty: all paths.', pathPrefix),
    Agent: optional('UUID of the only agent that gets it.', uuid),
    Policy: optional('Only agents with this policy get it.'),
    Header: text('Authorization', 'Header field of the credential.', credentialHeader),
    Query: optional('Query parameter of the credential, instead of Header.', queryName),
    Prefix: optional('Text before the value, such as "Bearer ".', credentialPrefix),
    Credential: optional('Name of the credential, of Credentials.', credentialName),
    ValueFromEnv: optional('Environment variable with the value.', variableName),
    ValueFromFile: optional(`File with the value, relative to gateway.yaml; ${privateFile}`),
    Override: choice(
      ['Refuse', 'Replace', 'Keep'],
      'Refuse',
      'When the agent sends this field itself: refuse it, replace its value, such as the placeholder of an SDK, or keep it.',
    ),
    AllowHttp: boolean(false, 'Also send it without TLS.'),
  },
  'Credentials that the gateway adds to requests, so that agents hold none: see docs/credentials.md.',
)

export type UpstreamSetting = SettingValues<typeof upstreams>[number]

interface UpstreamSettings {
  readonly Upstreams: readonly UpstreamSetting[]
  readonly Credentials: readonly CredentialSetting[]
}

/** @param tokenHeader field in which agents send their tokens */
export function upstreamsProblem(
  { Upstreams, Credentials }: UpstreamSettings,
  tokenHeader: string,
): string | undefined {
  return entriesProblem(Upstreams, entry => sourceProblem(entry, Credentials) ?? placeProblem(entry, tokenHeader))
}

function sourceProblem(entry: UpstreamSetting, known: readonly CredentialSetting[]): string | undefined {
  const { Host, Credential, ValueFromEnv, ValueFromFile } = entry
  if (Host === undefined) return 'Host must be set'
  const sources = [Credential, ValueFromEnv, ValueFromFile].filter(source => source !== undefined)
  if (sources.length !== 1) return 'one of Credential, ValueFromEnv and ValueFromFile must be set'
  if (Credential === undefined) return undefined
  const credential = known.find(({ Name }) => Name === Credential)
  if (credential === undefined) return 'Credential must name an entry of Credentials'
  if (credential.McpServer !== undefined && !isHostOf(Host, credential.McpServer))
    return `Host must be that of McpServer of ${Credential}`
  const [, domain = ''] = /^\*?\.(.*?)(?::\d+)?$/.exec(Host.toLowerCase()) ?? []
  return !isOfOneHost.has(credential.Type) && tenantDomains.has(domain)
    ? 'Host must be one name: others may have theirs below this domain'
    : undefined
}

/** A token for an MCP server goes there alone. */
function isHostOf(host: string, url: string): boolean {
  const of = (text: string) => URL.parse(text)?.host
  return of(`https://${host}`) === of(url)
}

/** A signature is of no use for another host, and a fixed value is the operator's choice. */
const isOfOneHost: ReadonlySet<string> = new Set(['Value', 'Aws'])

/** Domains below which anybody can have a name: a token must not go to all of them. */
const tenantDomains: ReadonlySet<string> = new Set([
  'amazonaws.com',
  'appspot.com',
  'azurewebsites.net',
  'blob.core.windows.net',
  'cloudfront.net',
  'firebaseapp.com',
  'github.io',
  'herokuapp.com',
  'myshopify.com',
  'netlify.app',
  'ngrok.io',
  'onrender.com',
  'pages.dev',
  'run.app',
  'vercel.app',
  'web.app',
  'workers.dev',
])

function placeProblem(entry: UpstreamSetting, tokenHeader: string): string | undefined {
  const { Header, Query } = entry
  if (isBareScheme(entry)) return 'Prefix must end with a space, in quotes: "Bearer "'
  if (Query === undefined) {
    return Header.toLowerCase() === tokenHeader.toLowerCase() ? 'Header must not be CustomHeaderName' : undefined
  }
  return Header === 'Authorization' ? undefined : 'Header and Query must not both be set'
}

/** Without a space the scheme and the credential would be one word, which no server takes. */
const isBareScheme = ({ Header, Prefix = '' }: UpstreamSetting): boolean =>
  /^authorization$/i.test(Header) ? /^[\w-]+$/.test(Prefix) : /^(?:bearer|basic|token)$/i.test(Prefix)
