import {
  awsName,
  commandPart,
  credentialHeader,
  credentialName,
  credentialPrefix,
  hostAndPort,
  httpsUrl,
  jsonPointer,
  pathPrefix,
  queryName,
  uuid,
  variableName,
} from './formats.ts'
import { boolean, choice, integer, list, objects, optional, type SettingValues, text } from './setting.ts'

/** Secrets by name: where the gateway reads them. */
export const secrets = objects(
  {
    Name: optional('Name of the secret: lower-case letters, digits and dashes.', credentialName),
    FromEnv: optional('Environment variable with the secret.', variableName),
    FromFile: optional(
      'File with the secret, relative to gateway.yaml; read again when it changes. Readable by its owner alone.',
    ),
    FromCommand: list('Program, as an absolute path, and its arguments: its output is the secret.', commandPart),
    FromUrl: optional(
      'Address of the secret in a store, such as Vault. It is read when a request first needs it.',
      httpsUrl,
    ),
    Credential: optional('Name of the credential with which FromUrl is read, of Credentials.', credentialName),
    Body: optional('Body of the request to FromUrl, which is a POST then, as the stores of AWS want it.'),
    EverySeconds: integer(300, 'Time between two looks at FromUrl.', { min: 10, max: 86_400 }),
    Pointer: optional('JSON pointer to the value, where the secret is JSON.', jsonPointer),
    Encoding: choice(['Text', 'Base64'], 'Text', 'How the value is written.'),
  },
  'Secrets of the credentials below, each from one source: see docs/credentials.md.',
)

/** Types whose token comes from a server. */
const tokenTypes = [
  'ClientCredentials',
  'RefreshToken',
  'JwtBearer',
  'TokenExchange',
  'GitHubApp',
  'Vault',
  'Aws',
] as const
const credentialTypes = ['Value', 'Basic', ...tokenTypes] as const

export const credentials = objects(
  {
    Name: optional('Name of the credential: lower-case letters, digits and dashes.', credentialName),
    Type: choice(credentialTypes, 'Value', 'How the gateway gets what it adds.'),
    Secret: optional(
      'Name of the secret: value, password, client secret, private key or token of the workload.',
      credentialName,
    ),
    Issuer: optional('Server that issues tokens, instead of TokenUrl: its document says where.', httpsUrl),
    TokenUrl: optional('Address of the server that issues tokens.', httpsUrl),
    ClientId: optional(
      'Client that the gateway is at that server; of GitHubApp the id of the app, of Vault that of an AppRole.',
    ),
    ClientAuth: choice(
      ['Basic', 'Post', 'PrivateKeyJwt', 'Assertion', 'None'],
      'Basic',
      'How the client of ClientCredentials and RefreshToken proves who it is; None: a public client, without Secret.',
    ),
    Scope: optional('Scope that is asked for.'),
    Audience: optional('Audience that is asked for, or of the assertion of JwtBearer.'),
    Resource: optional('Resource that the token is for (RFC 8707).', httpsUrl),
    Subject: optional(
      'User name of Basic, user of JwtBearer, id of the installation of GitHubApp, role of Aws or Vault, service account of Google.',
    ),
    RefreshToken: optional(
      'Name of the secret with the first refresh token, when nobody connects the credential: see docs/credentials.md.',
      credentialName,
    ),
    Services: list('Services of AWS that may be signed for; the first one when the agent names none.', awsName),
    Regions: list('Regions of AWS that may be signed for; the first one when the agent names none.', awsName),
    TimeoutSeconds: integer(10, 'Longest wait for a token.', { min: 1, max: 60 }),
  },
  'Credentials that renew themselves, by name: see docs/credentials.md.',
)

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
    ValueFromFile: optional('File with the value, relative to gateway.yaml; readable by its owner alone.'),
    Override: choice(
      ['Refuse', 'Replace', 'Keep'],
      'Refuse',
      'When the agent sends this field itself: refuse it, replace its value, such as the placeholder of an SDK, or keep it.',
    ),
    AllowHttp: boolean(false, 'Also send it without TLS.'),
  },
  'Credentials that the gateway adds to requests, so that agents hold none: see docs/credentials.md.',
)

export type SecretSetting = SettingValues<typeof secrets>[number]
export type CredentialSetting = SettingValues<typeof credentials>[number]
export type UpstreamSetting = SettingValues<typeof upstreams>[number]

/** The settings that are read together. */
interface CredentialSettings {
  readonly Secrets: readonly SecretSetting[]
  readonly Credentials: readonly CredentialSetting[]
  readonly Upstreams: readonly UpstreamSetting[]
}

/** What is wrong with the secrets; undefined when nothing is. */
export function secretsProblem(settings: CredentialSettings): string | undefined {
  return entriesProblem(settings.Secrets, secret => {
    const { FromEnv, FromFile, FromCommand, FromUrl, Credential, Body } = secret
    const sources = [FromEnv, FromFile, FromCommand[0], FromUrl].filter(source => source !== undefined)
    if (sources.length !== 1) return 'one of FromEnv, FromFile, FromCommand and FromUrl must be set'
    const [program] = FromCommand
    if (program?.startsWith('/') === false) return 'FromCommand must begin with an absolute path'
    if (FromUrl === undefined) return (Credential ?? Body) ? 'Credential and Body are for FromUrl alone' : undefined
    return storeProblem(secret, settings)
  })
}

/** Each credential needs secrets, which may need credentials again: that must have an end. */
function storeProblem(secret: SecretSetting, { Credentials, Secrets }: CredentialSettings): string | undefined {
  const met = new Set([secret.Credential])
  // It also visits what is added meanwhile.
  for (const name of met) {
    if (name === undefined) continue
    const credential = Credentials.find(({ Name }) => Name === name)
    if (credential === undefined) return 'Credential must name an entry of Credentials'
    const read = [credential.Secret, credential.RefreshToken]
    if (read.includes(secret.Name)) return 'its Credential needs this secret itself'
    for (const { Name, Credential } of Secrets) if (read.includes(Name)) met.add(Credential)
  }
  return undefined
}

export function credentialsProblem({ Credentials, Secrets }: CredentialSettings): string | undefined {
  return entriesProblem(Credentials, entry => {
    const { Type } = entry
    const missing = needed[Type].filter(name => isMissing(entry[name]))
    if (missing.length > 0) return `${missing.join(' and ')} must be set for ${Type}`
    const isLogin = (entry.ClientId === undefined) !== (entry.Subject === undefined)
    if (Type === 'Vault' && !isLogin) return 'ClientId (of AppRole) or Subject (a role) must be set for Vault'
    return secretProblem(entry, Secrets) ?? serverProblem(entry)
  })
}

function secretProblem(entry: CredentialSetting, known: readonly SecretSetting[]): string | undefined {
  const { Secret, RefreshToken, ClientAuth, Type } = entry
  const isKnown = (name: string | undefined) => known.some(({ Name }) => Name === name)
  if (RefreshToken !== undefined && Type !== 'RefreshToken') return `RefreshToken must not be set for ${Type}`
  if (RefreshToken !== undefined && !isKnown(RefreshToken)) return 'RefreshToken must name an entry of Secrets'
  if (ClientAuth !== 'None') return isKnown(Secret) ? undefined : 'Secret must name an entry of Secrets'
  if (Type !== 'RefreshToken') return 'ClientAuth None is of RefreshToken alone'
  return Secret === undefined ? undefined : 'Secret must not be set with ClientAuth None'
}

/** Types that ask a server which the settings name. */
const asksServer: ReadonlySet<string> = new Set(['ClientCredentials', 'RefreshToken', 'TokenExchange'])

function serverProblem({ Issuer, TokenUrl, Type }: CredentialSetting): string | undefined {
  if (Issuer !== undefined && TokenUrl !== undefined) return 'Issuer and TokenUrl must not both be set'
  if (Issuer !== undefined && !asksServer.has(Type) && Type !== 'JwtBearer') return `Issuer must not be set for ${Type}`
  const isMissing = asksServer.has(Type) && Issuer === undefined && TokenUrl === undefined
  return isMissing ? `Issuer or TokenUrl must be set for ${Type}` : undefined
}

/** Settings without which a credential of a type cannot be had. */
const needed: Readonly<Record<CredentialSetting['Type'], readonly (keyof CredentialSetting)[]>> = {
  Value: [],
  Basic: ['Subject'],
  ClientCredentials: ['ClientId'],
  RefreshToken: ['ClientId'],
  JwtBearer: [],
  TokenExchange: [],
  GitHubApp: ['ClientId', 'Subject'],
  Vault: ['TokenUrl'],
  Aws: ['Services', 'Regions'],
}

const isMissing = (value: unknown): boolean => value === undefined || (Array.isArray(value) && value.length === 0)

/** Names must be there, and differ. */
function entriesProblem<E extends { readonly Name: string | undefined }>(
  entries: readonly E[],
  problemOf: (entry: E) => string | undefined,
): string | undefined {
  const problems = entries.flatMap((entry, index) => {
    const { Name } = entry
    const isTaken = entries.slice(0, index).some(other => other.Name === Name)
    const problem = Name === undefined ? 'Name must be set' : isTaken ? 'Name must differ' : problemOf(entry)
    return problem === undefined ? [] : [`entry ${index}: ${problem}`]
  })
  return problems.length === 0 ? undefined : problems.join('; ')
}

/** @param tokenHeader field in which agents send their tokens */
export function upstreamsProblem(
  { Upstreams, Credentials }: CredentialSettings,
  tokenHeader: string,
): string | undefined {
  const problems = Upstreams.flatMap((entry, index) => {
    const problem = sourceProblem(entry, Credentials) ?? placeProblem(entry, tokenHeader)
    return problem === undefined ? [] : [`entry ${index}: ${problem}`]
  })
  return problems.length === 0 ? undefined : problems.join('; ')
}

function sourceProblem(entry: UpstreamSetting, known: readonly CredentialSetting[]): string | undefined {
  const { Host, Credential, ValueFromEnv, ValueFromFile } = entry
  if (Host === undefined) return 'Host must be set'
  const sources = [Credential, ValueFromEnv, ValueFromFile].filter(source => source !== undefined)
  if (sources.length !== 1) return 'one of Credential, ValueFromEnv and ValueFromFile must be set'
  if (Credential === undefined) return undefined
  const credential = known.find(({ Name }) => Name === Credential)
  if (credential === undefined) return 'Credential must name an entry of Credentials'
  const [, domain = ''] = /^\*?\.(.*?)(?::\d+)?$/.exec(Host.toLowerCase()) ?? []
  return !isOfOneHost.has(credential.Type) && tenantDomains.has(domain)
    ? 'Host must be one name: others may have theirs below this domain'
    : undefined
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
