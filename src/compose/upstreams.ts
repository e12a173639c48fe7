import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { parseHostPatterns } from '../base/host.ts'
import { createOrigin } from '../base/origin.ts'
import type { Clock } from '../clock.ts'
import type { Environment } from '../config/environment.ts'
import type { Config } from '../config/schema.ts'
import { StartupError } from '../errors.ts'
import type { FetchDocument } from '../tokens/fetch.ts'
import { createFetch, FetchError } from '../tokens/fetch.ts'
import type { OpenHttp1 } from '../upstream/connection-settings.ts'
import { Connections } from '../upstream/connections.ts'
import type { Credentials } from '../upstream/credentials.ts'
import { openCredentials } from '../upstream/credentials.ts'
import type { Egress } from '../upstream/egress.ts'
import { createEgress } from '../upstream/egress.ts'
import type { Lookup, Resolver } from '../upstream/resolve.ts'
import { createResolver } from '../upstream/resolve.ts'

/** Everything that leads out of the gateway. */
export interface Upstreams {
  readonly egress: Egress
  readonly resolver: Resolver
  readonly connections: Connections
  /** Keys of upstreams that agents need not hold; undefined when none is configured. */
  readonly credentials: Credentials | undefined
  /** Documents of the configured identity provider. */
  readonly fetchDocument: FetchDocument
}

export interface UpstreamDeps {
  readonly clock: Clock
  readonly lookup: Lookup
  readonly env: Environment
}

/** Look-ups of names under way at once, in all threads together. */
const lookupsAtOnce = 256

/** @throws StartupError when a file or variable that the configuration names cannot be read */
export async function openUpstreams(config: Config, baseDirectory: string, deps: UpstreamDeps): Promise<Upstreams> {
  const { Proxy: proxy } = config
  const credentials = await openCredentials(config.Upstreams, { env: deps.env, baseDirectory })
  const egress = createEgress(config.Egress)
  const concurrency = Math.ceil(lookupsAtOnce / config.System.Server.Threads)
  const resolver = createResolver({ clock: deps.clock, lookup: deps.lookup, concurrency })
  const ca = proxy.CaFile === undefined ? undefined : readAuthorities(resolve(baseDirectory, proxy.CaFile))
  const connections = new Connections(
    {
      perOrigin: proxy.MaxConnectionsPerOrigin,
      total: proxy.MaxConnections,
      maxWaiting: proxy.MaxWaiting,
      waitMs: longestWaitSeconds(config) * 1_000,
      connectTimeoutMs: proxy.ConnectTimeoutSeconds * 1_000,
      headersTimeoutMs: proxy.HeadersTimeoutSeconds * 1_000,
      idleTimeoutMs: proxy.IdleTimeoutSeconds * 1_000,
      eventStreamIdleMs: proxy.EventStreamIdleSeconds * 1_000,
      http2Hosts: parseHostPatterns(proxy.Http2Hosts),
      openHttp1: proxy.Client === 'Undici' ? await openUndici() : undefined,
      ca,
    },
    deps.clock,
  )
  const authority = config.Security.AgentAuth.ExternalIdentity.Jwt.Authority
  const addressOf = guardedAddress({ egress, resolver, trusted: URL.parse(authority ?? '')?.origin })
  const fetchDocument = createFetch({ addressOf, ...(ca === undefined ? {} : { ca: [ca] }) })
  return { egress, resolver, connections, credentials, fetchDocument }
}

/** Longest wait of a request for a connection, seconds: an answer may take longer. */
export function longestWaitSeconds({ Proxy: { HeadersTimeoutSeconds } }: Config): number {
  return Math.min(HeadersTimeoutSeconds, 120)
}

/** Loaded only where it is wanted: it takes memory and time at the start. */
async function openUndici(): Promise<OpenHttp1> {
  const { UndiciConnection } = await import('../upstream/undici.ts')
  return (authority, settings, connect) => new UndiciConnection(authority, settings, connect)
}

function readAuthorities(path: string): string {
  try {
    const text = readFileSync(path, 'utf8')
    // Without this TLS would skip invalid certificates, and trust no authority.
    new X509Certificate(text)
    return text
  } catch (error) {
    const { code, syscall } = error as NodeJS.ErrnoException
    const problem = syscall === undefined ? 'contains no certificate in PEM form' : `cannot be read (${code})`
    throw new StartupError(`Proxy:CaFile: ${path} ${problem}.`)
  }
}

interface Guarded {
  readonly egress: Egress
  readonly resolver: Resolver
  /** Origin that the operator has configured, and so may be anywhere. */
  readonly trusted: string | undefined
}

function guardedAddress({ egress, resolver, trusted }: Guarded): (url: URL) => Promise<string> {
  return async url => {
    const scheme = url.protocol === 'http:' ? 'http' : 'https'
    const origin = createOrigin(scheme, url.hostname, Number(url.port) || (scheme === 'http' ? 80 : 443))
    const resolution = await resolver.resolve(origin.host)
    if ('failed' in resolution) throw new FetchError(`${url.host}: no address found`)
    const refusal = egress.checkHost(origin) ?? egress.checkAddresses(origin, resolution.addresses)
    if (refusal !== undefined && url.origin !== trusted) throw new FetchError(`${url.host}: refused by Egress`)
    return resolution.addresses[0] as string
  }
}
