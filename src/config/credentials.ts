import {
  awsName,
  commandPart,
  credentialName,
  httpsUrl,
  jsonPointer,
  privateFile,
  queryParameter,
  variableName,
} from './formats.ts'
import { choice, entriesProblem, integer, list, objects, optional, type SettingValues } from './setting.ts'

/** Secrets by name: where the gateway reads them. */
export const secrets = objects(
  {
    Name: optional('Name of the secret: lower-case letters, digits and dashes.', credentialName),
    FromEnv: optional('Environment variable with the secret.', variableName),
    FromFile: optional(`File with the secret, relative to gateway.yaml; read again when it changes; ${privateFile}`),
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
  'Connect',
  'JwtBearer',
  'TokenExchange',
  'AgentTokenExchange',
  'IdJag',
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
    McpServer: optional(
      'Address of the MCP server that the token is for: it must name Issuer (RFC 9728). Stands for Resource.',
      httpsUrl,
    ),
    TokenUrl: optional('Address of the server that issues tokens.', httpsUrl),
    ClientId: optional(
      'Client that the gateway is at that server; of GitHubApp the id of the app, of Vault that of an AppRole. Connect needs none where the gateway can be one itself.',
    ),
    ClientAuth: choice(
      ['Basic', 'Post', 'PrivateKeyJwt', 'Assertion', 'None'],
      'Basic',
      'How the client proves who it is; None: a public client, without Secret.',
    ),
    ResourceClientId: optional('Client that the gateway is at the server of the resource, for IdJag; else ClientId.'),
    ResourceSecret: optional(
      'Name of the secret of that client. Without it: the key of PrivateKeyJwt, or a public client.',
      credentialName,
    ),
    AuthorizationUrl: optional('Page of consent of a server without a document, for Connect.', httpsUrl),
    DeviceUrl: optional(
      'Where a server without a document issues codes that people enter at it (RFC 8628), for Connect.',
      httpsUrl,
    ),
    Parameters: list('Further parameters of that page, such as access_type=offline of Google.', queryParameter),
    Per: choice(
      ['Agent', 'Owner', 'All'],
      'Agent',
      'Whose account requests get with Connect: that of their agent, of its owner, or one of all agents.',
    ),
    Scope: optional('Scope that is asked for.'),
    StepUpScope: optional(
      'Scopes that people may add to an account of Connect when an upstream wants them (403 insufficient_scope); nothing asks for them by itself.',
    ),
    Audience: optional(
      'Audience that is asked for, or of the assertion of JwtBearer; of IdJag the issuer of the resource.',
    ),
    Resource: optional('Resource that the token is for (RFC 8707).', httpsUrl),
    Subject: optional(
      'User name of Basic, user of JwtBearer, id of the installation of GitHubApp, role of Aws or Vault, service account of Google.',
    ),
    SubjectTokenType: choice(
      ['AccessToken', 'IdToken', 'Jwt'],
      'AccessToken',
      'What the token of the agent is for the server of AgentTokenExchange and IdJag (RFC 8693 section 3).',
    ),
    ActorToken: optional(
      'Name of the secret with a token of the gateway itself, of AgentTokenExchange.',
      credentialName,
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

export type SecretSetting = SettingValues<typeof secrets>[number]
export type CredentialSetting = SettingValues<typeof credentials>[number]

interface CredentialSettings {
  readonly Secrets: readonly SecretSetting[]
  readonly Credentials: readonly CredentialSetting[]
}

/** Types whose token is had for that of the agent that calls: each agent has its own. */
const agentTypes: ReadonlySet<string> = new Set(['AgentTokenExchange', 'IdJag'])

export const isForAgentToken = ({ Type }: Pick<CredentialSetting, 'Type'>): boolean => agentTypes.has(Type)

/** Whether the gateway is a client that it makes itself: see docs/credentials.md. */
const isOwnClient = ({ Type, ClientId }: CredentialSetting): boolean => Type === 'Connect' && ClientId === undefined

export function secretsProblem(settings: CredentialSettings): string | undefined {
  return namedProblem(settings.Secrets, secret => {
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
    if (credential.Type === 'Connect') return 'Credential must not be of type Connect'
    if (isForAgentToken(credential)) return `a store cannot be read with ${credential.Type}: no agent asks it`
    const read = [credential.Secret, credential.RefreshToken]
    if (read.includes(secret.Name)) return 'its Credential needs this secret itself'
    for (const { Name, Credential } of Secrets) if (read.includes(Name)) met.add(Credential)
  }
  return undefined
}

/** @param provider identity provider of agents, if there is one */
export function credentialsProblem(
  { Credentials, Secrets }: CredentialSettings,
  provider: string | undefined,
): string | undefined {
  return namedProblem(Credentials, entry => {
    const { Type } = entry
    if (isForAgentToken(entry) && provider === undefined)
      return `${Type} needs Security:AgentAuth:ExternalIdentity: agents call with tokens of that provider`
    const missing = needed[Type].filter(name => isMissing(entry[name]))
    if (missing.length > 0) return `${missing.join(' and ')} must be set for ${Type}`
    const isLogin = (entry.ClientId === undefined) !== (entry.Subject === undefined)
    if (Type === 'Vault' && !isLogin) return 'ClientId (of AppRole) or Subject (a role) must be set for Vault'
    return secretProblem(entry, Secrets) ?? serverProblem(entry) ?? consentProblem(entry)
  })
}

function secretProblem(entry: CredentialSetting, known: readonly SecretSetting[]): string | undefined {
  const { Secret, RefreshToken, ClientAuth, Type } = entry
  const isKnown = (name: string | undefined) => known.some(({ Name }) => Name === name)
  if (RefreshToken !== undefined && Type !== 'RefreshToken') return `RefreshToken must not be set for ${Type}`
  if (RefreshToken !== undefined && !isKnown(RefreshToken)) return 'RefreshToken must name an entry of Secrets'
  const problem = agentTokenProblem(entry, isKnown)
  if (problem !== undefined) return problem
  if (isOwnClient(entry)) return Secret === undefined ? undefined : 'ClientId must be set with Secret'
  if (ClientAuth !== 'None') return isKnown(Secret) ? undefined : 'Secret must name an entry of Secrets'
  if (!isPublic.has(Type)) return `ClientAuth must not be None for ${Type}`
  return Secret === undefined ? undefined : 'Secret must not be set with ClientAuth None'
}

/** Types whose client may have no secret: a token, of a person or an agent, says more. */
const isPublic: ReadonlySet<string> = new Set(['RefreshToken', 'Connect', ...agentTypes])

function agentTokenProblem(
  { Type, Audience, ActorToken, ClientAuth, ResourceClientId, ResourceSecret }: CredentialSetting,
  isKnown: (name: string | undefined) => boolean,
): string | undefined {
  if (ActorToken !== undefined && Type !== 'AgentTokenExchange') return `ActorToken must not be set for ${Type}`
  if (ActorToken !== undefined && !isKnown(ActorToken)) return 'ActorToken must name an entry of Secrets'
  if (isForAgentToken({ Type }) && ClientAuth === 'Assertion') return `ClientAuth must not be Assertion for ${Type}`
  if (Type !== 'IdJag') {
    return (ResourceClientId ?? ResourceSecret) && 'ResourceClientId and ResourceSecret are for IdJag alone'
  }
  if (ResourceSecret !== undefined && !isKnown(ResourceSecret)) return 'ResourceSecret must name an entry of Secrets'
  const problem = httpsUrl(Audience ?? '')
  return problem && `Audience: ${problem}`
}

/** A document says where people consent; without one the settings must. */
function consentProblem(entry: CredentialSetting): string | undefined {
  const { Type, ClientId, TokenUrl, AuthorizationUrl, DeviceUrl, Parameters, Per, Scope, StepUpScope } = entry
  const url = AuthorizationUrl ?? DeviceUrl
  if (Type === 'Connect') {
    if (ClientId === undefined && TokenUrl !== undefined) return 'ClientId must be set with TokenUrl'
    if (StepUpScope !== undefined && Scope === undefined) return 'Scope must be set with StepUpScope'
    const isMissing = TokenUrl !== undefined && url === undefined
    return isMissing ? 'AuthorizationUrl or DeviceUrl must be set beside TokenUrl' : undefined
  }
  if (StepUpScope !== undefined) return `StepUpScope must not be set for ${Type}`
  const isOther = url !== undefined || Parameters.length > 0 || Per !== 'Agent'
  return isOther ? `AuthorizationUrl, DeviceUrl, Parameters and Per must not be set for ${Type}` : undefined
}

/** Types that ask a server which the settings name. */
const asksServer: ReadonlySet<string> = new Set([
  ...['ClientCredentials', 'RefreshToken', 'Connect', 'TokenExchange', ...agentTypes],
])

function serverProblem({ Issuer, TokenUrl, Type, McpServer, Resource }: CredentialSetting): string | undefined {
  if (McpServer !== undefined && !asksServer.has(Type)) return `McpServer must not be set for ${Type}`
  if (McpServer !== undefined && Issuer === undefined)
    return 'Issuer must be set with McpServer: agent-gateway credential discover names it'
  if (McpServer !== undefined && Resource !== undefined) return 'McpServer and Resource must not both be set'
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
  Connect: [],
  JwtBearer: [],
  TokenExchange: [],
  AgentTokenExchange: ['ClientId'],
  IdJag: ['ClientId', 'Audience'],
  GitHubApp: ['ClientId', 'Subject'],
  Vault: ['TokenUrl'],
  Aws: ['Services', 'Regions'],
}

const isMissing = (value: unknown): boolean => value === undefined || (Array.isArray(value) && value.length === 0)

/** Names must be there, and differ. */
function namedProblem<E extends { readonly Name: string | undefined }>(
  entries: readonly E[],
  problemOf: (entry: E) => string | undefined,
): string | undefined {
  return entriesProblem(entries, (entry, before) => {
    if (entry.Name === undefined) return 'Name must be set'
    return before.some(({ Name }) => Name === entry.Name) ? 'Name must differ' : problemOf(entry)
  })
}
