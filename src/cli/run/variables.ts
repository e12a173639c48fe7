import type { Environment } from '../../config/environment.ts'
import { schema } from '../../config/schema.ts'
import { settingsOf } from '../../config/setting.ts'
import { relayUser } from './relay.ts'
import type { TrustFiles } from './trust.ts'

export interface ProgramPlace {
  /** Port of the relay on 127.0.0.1, as the program sees it. */
  readonly port: number
  /** Undefined where only the program can connect. */
  readonly password: string | undefined
  /** Undefined when the gateway opens no TLS. */
  readonly trust: TrustFiles | undefined
  /** Names of further variables with secrets that are for the gateway alone. */
  readonly secrets?: readonly string[]
}

/**
 * What programs reach without a proxy: themselves. No address stands in brackets: httpx, and so the Python SDKs of OpenAI and
 * Anthropic, fails on one at its first call to anywhere.
 */
const direct = 'localhost,127.0.0.1,::1'

/** Variables that name a bundle, each for one tool or library. */
const bundleNames = [
  'SSL_CERT_FILE',
  'REQUESTS_CA_BUNDLE',
  'CURL_CA_BUNDLE',
  'GIT_SSL_CAINFO',
  'PIP_CERT',
  'npm_config_cafile',
  'AWS_CA_BUNDLE',
  'CARGO_HTTP_CAINFO',
  'GRPC_DEFAULT_SSL_ROOTS_FILE_PATH',
  'NIX_SSL_CERT_FILE',
  'CODEX_CA_CERTIFICATE',
  'CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE',
  'HTTPLIB2_CA_CERTS',
  'HEX_CACERTS_PATH',
  'BUNDLE_SSL_CA_CERT',
]

/** The environment of the program: it calls through the relay, trusts the gateway, and has no secret of it. */
export function programEnvironment(env: Environment, place: ProgramPlace): Record<string, string> {
  const kept: Record<string, string> = {}
  const hides = (name: string): boolean => isSecret(name) || place.secrets?.includes(name) === true
  for (const [name, value] of Object.entries(env)) if (value !== undefined && !hides(name)) kept[name] = value
  return {
    ...kept,
    ...proxyVariables(place),
    ...trustVariables(place.trust),
    ...javaVariables(env, place),
  }
}

/** Variables with which the caller gives secrets to the gateway and its commands. */
const secretNames: ReadonlySet<string> = new Set(
  [...settingsOf(schema)].flatMap(([path, { secret }]) => (secret === true ? [path.join('__').toUpperCase()] : [])),
)
/** Keys, tokens and connection strings for the commands; none of them is for other programs. */
const commandPrefix = 'AGENT_GATEWAY_'

const isSecret = (name: string): boolean =>
  name.toUpperCase().startsWith(commandPrefix) || secretNames.has(name.toUpperCase())

function proxyVariables({ port, password }: ProgramPlace): Record<string, string> {
  const url = `http://${password === undefined ? '' : `${relayUser}:${password}@`}127.0.0.1:${port}`
  const named = { HTTP_PROXY: url, HTTPS_PROXY: url, ALL_PROXY: url, NO_PROXY: direct }
  const lower = Object.fromEntries(Object.entries(named).map(([name, value]) => [name.toLowerCase(), value]))
  return { ...named, ...lower, NODE_USE_ENV_PROXY: '1' }
}

function trustVariables(trust: TrustFiles | undefined): Record<string, string> {
  if (trust === undefined) return {}
  return {
    ...Object.fromEntries(bundleNames.map(name => [name, trust.bundle])),
    NODE_EXTRA_CA_CERTS: trust.extra,
    DENO_CERT: trust.extra,
    // uv has its own roots unless it is set to take those of SSL_CERT_FILE. It renamed the variable.
    UV_NATIVE_TLS: 'true',
    UV_SYSTEM_CERTS: 'true',
  }
}

/** Java reads no variable but this one. It cannot send a password to a proxy: with one its calls fail. */
function javaVariables(env: Environment, { port, trust }: ProgramPlace): Record<string, string> {
  const options = [
    ...['http', 'https'].flatMap(scheme => [`-D${scheme}.proxyHost=127.0.0.1`, `-D${scheme}.proxyPort=${port}`]),
    '-Dhttp.nonProxyHosts=localhost|127.*|[::1]',
    ...(trust === undefined
      ? []
      : [`-Djavax.net.ssl.trustStore=${trust.javaStore}`, '-Djavax.net.ssl.trustStoreType=PKCS12']),
  ]
  const { JAVA_TOOL_OPTIONS: given } = env
  return { JAVA_TOOL_OPTIONS: [...(given === undefined ? [] : [given]), ...options].join(' ') }
}
