import { getHeapStatistics } from 'node:v8'
import { normaliseHost } from '../base/host.ts'
import { budgetsProblem } from './budgets.ts'
import { credentialsProblem, secretsProblem } from './credentials.ts'
import type { ConfigFindings, ConfigProblem } from './given.ts'
import { linkProblem, mailProblem, pushProblem, serviceProblem, slackProblem } from './receivers.ts'
import { type Config, schema } from './schema.ts'
import { entriesProblem, type Setting, settingsOf } from './setting.ts'
import { upstreamsProblem } from './upstreams.ts'

/** A rule over several settings. The problem stands at the first of them that was given. */
interface CrossCheck {
  readonly settings: readonly [Setting<unknown>, ...Setting<unknown>[]]
  /** Says what must be when something is wrong. Called only when each of the settings is valid. */
  readonly problem: (config: Config) => string | false | undefined
}

const { Provider, Jwt, Introspection } = schema.Security.AgentAuth.ExternalIdentity
const { Bootstrap } = schema.Security
const { Tls } = schema.System.Server
const { Ca } = schema.ForwardProxy

/** Bytes of one read: a body may exceed its limit by so much before the gateway notices. */
const readBytes = 65_536

/** Bytes of bodies that may be held at once, as far as the memory of this process allows. */
export const maxHeldBytes = ({ Proxy: proxy }: Config): number => Math.min(proxy.MaxHeldBytes, heapShare())
const heapShare = (): number => Math.floor(getHeapStatistics().heap_size_limit / 4)

/** Bytes that one body may hold. */
export const longestHeldBody = ({ Proxy: proxy, HumanInTheLoop }: Config): number =>
  Math.max(proxy.MaxEvaluatedBodyBytes, HumanInTheLoop.MaxStoredBodyBytes) + readBytes

/** Longest head as it is stored: as it came, as it is sent and as it is shown. */
const storedHeadBytes = 262_144

/** Bytes that are stored of one held request at most: its body is kept to be sent, and in base64 to be shown. */
export const largestHeld = ({ MaxStoredBodyBytes }: Config['HumanInTheLoop']): number =>
  Math.ceil((MaxStoredBodyBytes * 7) / 3) + storedHeadBytes

const { PostgreSQL } = schema.Storage
const { TokenIssuance } = schema.Security.AgentAuth

const checks: readonly CrossCheck[] = [
  {
    settings: [PostgreSQL.ConnectionString, schema.Storage.Provider],
    problem({ Storage }) {
      const isGiven = Storage.PostgreSQL.ConnectionString !== undefined
      if (usesPostgres(Storage)) return !isGiven && 'must be set when Provider is PostgreSQL'
      return isGiven && 'must not be set unless Provider is PostgreSQL'
    },
  },
  {
    settings: [TokenIssuance.Secret, schema.Storage.Provider],
    problem: ({ Storage, Security }) =>
      usesPostgres(Storage) &&
      Security.AgentAuth.TokenIssuance.Secret === undefined &&
      'must be set when Storage:Provider is PostgreSQL, because no key is generated then; "openssl rand -base64 48" makes one',
  },
  {
    settings: [PostgreSQL.CaFile, PostgreSQL.Tls],
    problem: ({ Storage: { PostgreSQL: given } }) =>
      given.CaFile !== undefined && given.Tls === 'Off' && 'must not be set when Tls is Off',
  },
  {
    settings: [schema.Proxy.MaxHeldBytes, schema.Proxy.MaxEvaluatedBodyBytes, schema.HumanInTheLoop.MaxStoredBodyBytes],
    problem(config) {
      const least = longestHeldBody(config)
      if (maxHeldBytes(config) >= least) return false
      const reason = 'so that one body of MaxEvaluatedBodyBytes or HumanInTheLoop:MaxStoredBodyBytes can be held'
      return config.Proxy.MaxHeldBytes < least
        ? `must be at least ${least}, ${reason}`
        : `a quarter of the heap limit of Node.js, ${heapShare()} bytes, must be at least ${least}, ${reason}`
    },
  },
  {
    settings: [schema.HumanInTheLoop.MaxStoredBytes, schema.HumanInTheLoop.MaxStoredBodyBytes],
    problem({ HumanInTheLoop }) {
      const least = largestHeld(HumanInTheLoop)
      return (
        HumanInTheLoop.MaxStoredBytes < least &&
        `must be at least ${least}, so that one body of MaxStoredBodyBytes can be held`
      )
    },
  },
  {
    settings: [Jwt.Authority, Provider],
    problem: ({ Security }) =>
      isExternal(Security) && jwtOf(Security).Authority === undefined && 'must be set when Provider is Jwt',
  },
  {
    settings: [Jwt.Authority, Jwt.RequireHttpsMetadata],
    problem({ Security }) {
      const { Authority = '', RequireHttpsMetadata } = jwtOf(Security)
      return (
        RequireHttpsMetadata && /^http:/i.test(Authority) && 'must be an https URL unless RequireHttpsMetadata is false'
      )
    },
  },
  {
    settings: [Jwt.Audience, Jwt.ValidateAudience, Provider],
    problem({ Security }) {
      const { Audience, ValidateAudience } = jwtOf(Security)
      return (
        isExternal(Security) &&
        ValidateAudience &&
        Audience === undefined &&
        'must be set unless ValidateAudience is false'
      )
    },
  },
  {
    settings: [Introspection.ClientId, Introspection.ClientSecret, Provider],
    problem({ Security }) {
      const { ClientId, ClientSecret } = Security.AgentAuth.ExternalIdentity.Introspection
      if ((ClientId === undefined) !== (ClientSecret === undefined)) {
        return 'ClientId and ClientSecret must both be set, or neither'
      }
      return ClientId !== undefined && !isExternal(Security) && 'must not be set unless Provider is Jwt'
    },
  },
  {
    settings: [Introspection.Endpoint, Jwt.RequireHttpsMetadata],
    problem({ Security }) {
      const { Introspection: asked, Jwt: jwt } = Security.AgentAuth.ExternalIdentity
      const isPlain = /^http:/i.test(asked.Endpoint ?? '')
      return jwt.RequireHttpsMetadata && isPlain && 'must be an https URL unless RequireHttpsMetadata is false'
    },
  },
  {
    settings: [Bootstrap.AgentId, Bootstrap.ClientSecret],
    problem({ Security }) {
      const { AgentId, ClientSecret } = Security.Bootstrap
      return ClientSecret !== undefined && AgentId === undefined && 'must be set together with ClientSecret'
    },
  },
  {
    settings: [Tls.KeyFile, Tls.CertificateFile],
    problem: ({ System }) => halfProblem(System.Server.Tls),
  },
  {
    settings: [Ca.KeyFile, Ca.CertificateFile],
    problem: ({ ForwardProxy }) => halfProblem(ForwardProxy.Ca),
  },
  {
    settings: [Ca.CertificateFile, schema.ForwardProxy.Enabled, schema.Storage.Provider],
    problem: ({ ForwardProxy, Storage }) =>
      ForwardProxy.Enabled &&
      usesPostgres(Storage) &&
      ForwardProxy.Ca.CertificateFile === undefined &&
      'must be set when Storage:Provider is PostgreSQL: all gateways need one authority, and none is made then',
  },
  { settings: [schema.Secrets], problem: secretsProblem },
  {
    settings: [schema.Credentials, schema.Secrets, Provider],
    problem: config => credentialsProblem(config, config.Security.AgentAuth.ExternalIdentity.Provider),
  },
  {
    settings: [schema.Upstreams, schema.Credentials, schema.Security.AgentAuth.CustomHeaderName],
    problem: config => upstreamsProblem(config, config.Security.AgentAuth.CustomHeaderName),
  },
  {
    settings: [schema.Hosts, schema.System.Server.AllowedHosts, schema.System.PublicUrl],
    problem: ({ Hosts, System }) => entriesProblem(Hosts, (entry, before) => hostProblem(entry, before, System)),
  },
  {
    settings: [schema.Telemetry.Metrics.Origins],
    problem: ({ Telemetry: { Metrics } }) => Metrics.Origins.length > 50 && 'must have at most 50 entries',
  },
  { settings: [schema.Budgets], problem: ({ Budgets }) => budgetsProblem(Budgets) },
  {
    settings: [schema.HumanInTheLoop.Webhooks],
    problem({ HumanInTheLoop }) {
      const without = HumanInTheLoop.Webhooks.flatMap(({ Url }, index) => (Url === undefined ? [`entry ${index}`] : []))
      return without.length > 0 && `${without.join(', ')}: Url or UrlFromFile must be set`
    },
  },
  {
    settings: [schema.HumanInTheLoop.Email.Host],
    problem: ({ HumanInTheLoop }) => mailProblem(HumanInTheLoop.Email),
  },
  {
    settings: [schema.System.PublicUrl, schema.HumanInTheLoop.Email.Host, schema.HumanInTheLoop.Slack.BotToken],
    problem: linkProblem,
  },
  {
    settings: [schema.HumanInTheLoop.Push.Enabled, schema.System.PublicUrl],
    problem: pushProblem,
  },
  {
    settings: [schema.HumanInTheLoop.Slack.BotToken],
    problem: ({ HumanInTheLoop }) => slackProblem(HumanInTheLoop.Slack),
  },
  {
    settings: [schema.HumanInTheLoop.Webhooks],
    problem: ({ HumanInTheLoop }) => entriesProblem(HumanInTheLoop.Webhooks, serviceProblem),
  },
  {
    settings: [schema.HumanInTheLoop.Webhooks],
    problem({ HumanInTheLoop: { Webhooks } }) {
      const names = Webhooks.map(({ Url, Format }) => Url && `${Format} ${Url}`)
      const same = names.flatMap((name, index) => (name && names.indexOf(name) < index ? [`entry ${index}`] : []))
      return same.length > 0 && `${same.join(', ')}: Url and Format must not be those of another entry`
    },
  },
  {
    settings: [
      schema.HumanInTheLoop.LeaseSeconds,
      schema.Proxy.HeadersTimeoutSeconds,
      schema.Proxy.ConnectTimeoutSeconds,
    ],
    problem: ({ HumanInTheLoop, Proxy: { ConnectTimeoutSeconds, HeadersTimeoutSeconds } }) =>
      HumanInTheLoop.LeaseSeconds <= ConnectTimeoutSeconds + HeadersTimeoutSeconds &&
      'must be longer than Proxy:ConnectTimeoutSeconds and Proxy:HeadersTimeoutSeconds together',
  },
  {
    settings: [schema.ForwardProxy.TunnelHosts, schema.ForwardProxy.InterceptHosts],
    problem({ ForwardProxy: { TunnelHosts, InterceptHosts } }) {
      const opened = InterceptHosts.map(placeOf)
      const both = TunnelHosts.filter(text => opened.includes(placeOf(text)))
      return both.length > 0 && `${both.join(', ')} must not be in InterceptHosts as well`
    },
  },
  {
    settings: [schema.ForwardProxy.InterceptHosts, schema.ForwardProxy.Https],
    problem: ({ ForwardProxy: { InterceptHosts, Https } }) =>
      InterceptHosts.length > 0 && Https === 'Intercept' && 'must not be set unless Https is Tunnel',
  },
]

const halfProblem = ({ CertificateFile, KeyFile }: Config['ForwardProxy']['Ca']) =>
  (CertificateFile === undefined) !== (KeyFile === undefined) &&
  'CertificateFile and KeyFile must both be set, or neither'

const placeOf = (text: string): string => (/:\d+$/.test(text) ? text : `${text}:443`).toLowerCase()

const usesPostgres = ({ Provider: provider }: Config['Storage']) => provider === 'PostgreSQL'
const isExternal = ({ AgentAuth }: Config['Security']) => AgentAuth.ExternalIdentity.Provider !== undefined
const jwtOf = ({ AgentAuth }: Config['Security']) => AgentAuth.ExternalIdentity.Jwt

type HostEntry = Config['Hosts'][number]

function hostProblem(
  { Host, Upstream }: HostEntry,
  before: readonly HostEntry[],
  { PublicUrl, Server }: Config['System'],
): string | undefined {
  const host = Host === undefined ? undefined : normaliseHost(Host)
  if (host === undefined || Upstream === undefined) return 'Host and Upstream must be set'
  if (before.some(other => normaliseHost(other.Host ?? '') === host)) return 'Host must not be that of another entry'
  if (Server.AllowedHosts.some(name => normaliseHost(name) === host)) return 'Host must not be in AllowedHosts'
  const ofPublicUrl = PublicUrl === undefined ? undefined : normaliseHost(new URL(PublicUrl).hostname)
  return ofPublicUrl === host ? 'Host must not be that of System:PublicUrl' : undefined
}

const pathOf = new Map([...settingsOf(schema)].map(([path, setting]) => [setting, path.join(':')]))

/** Mistakes in the combination of settings. `fallbackPlace` is used when none of the settings was given. */
export function crossCheck(config: Config, given: ConfigFindings['given'], fallbackPlace: string): ConfigProblem[] {
  const problems: ConfigProblem[] = []
  for (const { settings, problem } of checks) {
    const found = settings.map(setting => given.get(setting)).filter(one => one !== undefined)
    if (found.some(one => one.value === undefined)) continue
    const message = problem(config)
    if (message === false || message === undefined) continue
    const name = pathOf.get(settings[0])
    problems.push({ place: found[0]?.place ?? fallbackPlace, message: `${name}: ${message}` })
  }
  return problems
}
