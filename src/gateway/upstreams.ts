import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { asError } from '../base/as-error.ts'
import { parseHostPatterns } from '../base/host.ts'
import { StartupError } from '../base/refusals.ts'
import type { Environment } from '../config/environment.ts'
import type { LiveSettings } from '../config/live.ts'
import type { Config } from '../config/schema.ts'
import { openCredentials } from '../credentials/credentials.ts'
import type { CredentialTable } from '../credentials/table.ts'
import { connectTime } from '../telemetry/layout.ts'
import { Connections } from '../upstream/connections.ts'
import { createTcpDial } from '../upstream/dial.ts'
import { createEgress, type EgressSettings } from '../upstream/egress.ts'
import { createOwnRequests } from '../upstream/own-requests.ts'
import { createResolver, createRoute, type Lookup } from '../upstream/resolve.ts'
import type { OpenHttp1 } from '../upstream/settings.ts'
import { selfUrlsOf } from './base.ts'
import { openKeptCredentials } from './credentials.ts'
import type { AttemptParts } from './kept-credential.ts'
import { openPrices } from './prices.ts'
import { collectorOf } from './tracing.ts'

/** All connections from the gateway to other servers. */
export type Upstreams = Awaited<ReturnType<typeof openUpstreams>>

export interface UpstreamDeps extends AttemptParts {
  readonly lookup: Lookup
  readonly env: Environment
  /** Absent when the settings never change. */
  readonly onSettings?: LiveSettings['onChange']
  /** Those of the first thread, as another one has them. */
  readonly credentials?: CredentialTable | undefined
}

/** Look-ups of names under way at once, in all threads together. */
const lookupsAtOnce = 256

/** @throws StartupError when a file or variable that the configuration names cannot be read */
export async function openUpstreams(config: Config, baseDirectory: string, deps: UpstreamDeps) {
  const { Proxy: proxy } = config
  const { clock, lookup, env } = deps
  const prices = await openPrices(config, baseDirectory)
  const egress = createEgress(egressOf(config, env))
  const concurrency = Math.ceil(lookupsAtOnce / config.System.Server.Threads)
  const resolver = createResolver({ clock, lookup, mayFind: egress.mayFind, concurrency })
  const ca = proxy.CaFile === undefined ? undefined : readAuthorities(resolve(baseDirectory, proxy.CaFile))
  const connections = await openConnections(config, ca, deps)
  const route = createRoute({ egress, resolver })
  const { Jwt, Introspection } = config.Security.AgentAuth.ExternalIdentity
  const trusted = [Jwt.Authority, Introspection.Endpoint].flatMap(url => URL.parse(url ?? '')?.origin ?? [])
  const dialTcp = createTcpDial({
    connectTimeoutMs: proxy.ConnectTimeoutSeconds * 1_000,
    takePlace: () => connections.takePlace(),
  })
  const ownRequests = createOwnRequests({ route, connections, dialTcp, trusted })
  const isFollower = deps.credentials !== undefined
  const keptCredentials = isFollower
    ? undefined
    : await openKeptCredentials(config, { ...deps, baseDirectory, ownRequests })
  const table = deps.credentials ?? keptCredentials?.table
  if (table === undefined) throw new Error('cannot happen: neither the first thread nor another one')
  const credentials = await openCredentials({ ...config, env, baseDirectory, table, clock })
  deps.onSettings?.(async next => {
    const useCredentials = await credentials.prepare(next.Upstreams)
    const useEgress = egress.prepare(egressOf(next, env))
    return () => {
      useCredentials()
      useEgress()
      resolver.forget()
    }
  })
  return {
    ...{ egress, route, connections },
    /** PEM text of the certificate authorities of Proxy:CaFile. */
    ca,
    /** For tunnels that are not opened. */
    dialTcp,
    /** Keys of upstreams that agents need not hold. */
    credentials,
    /** Undefined in the threads beside the first one. */
    keptCredentials,
    /** Undefined when calls of models are not metered. */
    prices,
    /** Webhooks and the documents of the identity provider. */
    ownRequests,
    async close() {
      await keptCredentials?.close()
      connections.close()
    },
  }
}

async function openConnections(config: Config, ca: string | undefined, { metrics, clock }: UpstreamDeps) {
  const { Proxy: proxy } = config
  return new Connections(
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
      onConnected: metrics && (ms => metrics.observe(connectTime, ms / 1e3)),
    },
    clock,
  )
}

export const egressOf = (config: Config, env: Environment): EgressSettings => ({
  ...config.Egress,
  ...{ SelfUrls: selfUrlsOf(config), collector: collectorOf(config, env) },
})

/** Longest wait of a request for a connection, seconds: an answer may take longer. */
export function longestWaitSeconds({ Proxy: { HeadersTimeoutSeconds } }: Config): number {
  return Math.min(HeadersTimeoutSeconds, 120)
}

/** Loaded only when it is used: it takes memory and time at the start. */
async function openUndici(): Promise<OpenHttp1> {
  const { UndiciConnection } = await import('../upstream/undici.ts')
  return (...parts) => new UndiciConnection(...parts)
}

function readAuthorities(path: string): string {
  try {
    const text = readFileSync(path, 'utf8')
    // Without this TLS would skip invalid certificates, and trust no authority.
    new X509Certificate(text)
    return text
  } catch (error) {
    const { code, syscall } = asError(error)
    const problem = syscall === undefined ? 'contains no certificate in PEM form' : `cannot be read (${code})`
    throw new StartupError(`Proxy:CaFile: ${path} ${problem}.`)
  }
}
