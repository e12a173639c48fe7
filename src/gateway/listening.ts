import { randomBytes } from 'node:crypto'
import { setImmediate } from 'node:timers/promises'
import type { Config } from '../config/schema.ts'
import { type AcceptOptions, type Acceptor, createAcceptor, type Incoming } from '../http/accept.ts'
import { describeCertificate, expiryOf, readCertificate } from '../http/certificate.ts'
import { readConnectTarget, readForwardTarget, readTunnelTarget, refuseInnerTunnel } from '../http/forward-target.ts'
import {
  assertFree,
  createListener,
  type Endpoint,
  type Listener,
  type ListenerAddress,
  type PassedEndpoint,
  type TcpEndpoint,
} from '../http/listeners.ts'
import { tunnelOf } from '../http/own-urls.ts'
import { longestWait } from '../http/prefer.ts'
import { createTargetReader, readOwnTarget } from '../http/request-line.ts'
import type { Certificate, ServerSettings } from '../http/servers.ts'
import type { Service } from '../http/service.ts'
import { createVirtualHosts } from '../http/virtual-hosts.ts'
import type { Interception } from '../intercept/interception.ts'
import { createQuota } from '../limits/quota.ts'
import { amountShape, createSharedAmount, createTableMemory, SharedTable } from '../limits/shared-table.ts'
import { createPeerOf } from '../pipeline/client-ip.ts'
import { viaName } from '../pipeline/outbound/upstream-request.ts'
import type { Bounds } from '../telemetry/bounds.ts'
import type { Egress } from '../upstream/egress.ts'
import { type Base, publicNames } from './base.ts'
import { type Entrypoint, entrypointsOf, isOfAllThreads } from './entrypoints.ts'
import type { SharedLimits } from './shared.ts'
import type { Counters } from './telemetry.ts'
import { longestWaitSeconds } from './upstreams.ts'

export interface ListeningParts
  extends Pick<AcceptOptions, 'onProxy' | 'report'>,
    Pick<Counters, 'acceptCounts'>,
    Pick<Base, 'config' | 'onSettings' | 'baseDirectory' | 'log'> {
  /** Calls of the gateway's own API. */
  readonly onManagement: (incoming: Incoming, serves: ReadonlySet<Service>) => Promise<void>
  readonly certificate: Certificate | undefined
  readonly passedSockets: readonly PassedEndpoint[]
  readonly egress: Egress
  /** Undefined without a forward proxy. */
  readonly interception: Interception | undefined
  readonly limits: Pick<SharedLimits, 'connections'>
  readonly bounds: Bounds
}

/** Turns of the event loop that exchanges may take to end after their connections were cut off. */
const longestEnd = 100

/** Where clients reach the gateway. */
export interface Listening extends Pick<Listener, 'adopt'> {
  /** Opens every endpoint; at least one. */
  listen(): Promise<readonly ListenerAddress[]>
  /**
   * Listens on the TCP ports that another thread has opened, and serves its share of their connections.
   *
   * @param ports in the order in which that thread has opened them
   */
  join(ports: readonly number[]): Promise<void>
  /**
   * Stops accepting and lets what is under way finish, for `limitMs` at most. Resolves with the value of `inFlight` when the
   * rest was cut off; 0 when nothing was.
   */
  drain(limitMs: number, inFlight: () => number): Promise<number>
  /** When the certificate expires, milliseconds since the epoch; undefined without one. */
  expiresAt(): number | undefined
  /** Reads the certificate again. False: it cannot be used, and the old one stays in force. */
  reload(): Promise<boolean>
}

export function createListening(parts: ListeningParts): Listening {
  const { config, baseDirectory, egress, log } = parts
  const [first, ...others] = entrypointsOf(parts)
  const open = (entrypoint: Entrypoint) => openEntrypoint(parts, entrypoint, parts.limits.connections)
  const agents = open(first)
  let expiresAt = parts.certificate && expiryOf(parts.certificate)
  const opened = [agents, ...others.filter(isOfAllThreads).map(open)]
  const onFirstThread = others.filter(entrypoint => !isOfAllThreads(entrypoint))
  return {
    adopt: connection => agents.listener.adopt(connection),
    async join(ports) {
      const endpoints = opened.flatMap(({ listen, listener }) =>
        listen.filter(isShared).map(endpoint => ({ endpoint, listener })),
      )
      for (const [index, { endpoint, listener }] of endpoints.entries()) {
        await listener.listen({ ...endpoint, port: ports[index]! })
      }
    },
    async drain(limitMs, inFlight) {
      let cutOff = 0
      const timer = setTimeout(() => {
        cutOff = inFlight()
        for (const { listener } of opened) listener.destroy()
      }, limitMs)
      await Promise.all(opened.map(({ listener }) => listener.drain())).finally(() => clearTimeout(timer))
      // An exchange ends, and is logged, some turns after its connection was cut off.
      for (let turn = 0; inFlight() > 0 && turn < longestEnd; turn++) await setImmediate()
      return cutOff
    },
    async listen() {
      // Only one thread serves people. Their connections are counted separately, since agents can take all of theirs.
      opened.push(...onFirstThread.map(entrypoint => openEntrypoint(parts, entrypoint, ownConnections(config))))
      const addresses: ListenerAddress[] = []
      for (const entrypoint of opened) addresses.push(...(await listenAt(entrypoint)))
      egress.setListeners(addresses.flatMap(({ port }) => port ?? []))
      return addresses
    },
    expiresAt: () => expiresAt,
    async reload() {
      try {
        const renewed = await readCertificate(config, baseDirectory)
        if (renewed === undefined) return true
        for (const { listener } of opened) listener.setCertificate(renewed)
        expiresAt = expiryOf(renewed)
        log.info({}, `certificate reloaded: ${describeCertificate(renewed)}`)
        return true
      } catch (error) {
        log.error({ error }, 'the certificate could not be reloaded; the old one stays in use')
        return false
      }
    },
  }
}

interface OpenEntrypoint extends Entrypoint {
  readonly listener: Listener
}

function openEntrypoint(
  parts: ListeningParts,
  entrypoint: Entrypoint,
  connections: ServerSettings['count'],
): OpenEntrypoint {
  const settings = settingsOf(parts, connections)
  const listener = createListener(settings, acceptorOf(parts, entrypoint))
  const isForward = entrypoint.serves.has('forward')
  return { ...entrypoint, listener: isForward ? withTunnels({ ...entrypoint, listener }, settings, parts) : listener }
}

/** A listener of the forward proxy. The connections in its tunnels have a second listener, which has no port. */
function withTunnels(
  { listener: front, serves }: OpenEntrypoint,
  settings: ServerSettings,
  parts: ListeningParts,
): Listener {
  const { config, interception } = parts
  if (interception === undefined) throw new Error('cannot happen: a forward proxy without an authority')
  const inner = createListener(
    { ...settings, certificate: undefined, keepAliveMs: config.ForwardProxy.KeepAliveSeconds * 1_000 },
    createAcceptor({
      ...acceptOptionsOf(parts, serves),
      routeOf: readTunnelTarget,
      connectTo: refuseInnerTunnel,
      onUnreadable: socket => interception.notHttp(tunnelOf(socket)),
    }),
    'calls',
  )
  interception.serve(connection => inner.adopt(connection))
  return {
    ...front,
    async drain() {
      // A handshake that ends later would open a connection that nothing closes.
      interception.drain()
      await Promise.all([front.drain(), inner.drain()])
    },
    destroy() {
      front.destroy()
      inner.destroy()
    },
  }
}

function settingsOf(
  { config, certificate, bounds, acceptCounts }: ListeningParts,
  connections: ServerSettings['count'],
): ServerSettings {
  const { Server } = config.System
  return {
    maxConnections: Server.MaxConnections,
    count: connections,
    onChange: acceptCounts.onChange,
    onRefused: (bound, peer) => bounds.reached(bound, undefined, undefined, peer),
    peerOf: createPeerOf(Server.TrustedProxies),
    headersTimeoutMs: Server.HeadersTimeoutSeconds * 1_000,
    keepAliveMs: Server.KeepAliveSeconds * 1_000,
    idleMs: longestIdle(config) * 1_000,
    certificate,
  }
}

/** Counts the connections of one entrypoint, which one thread serves. */
function ownConnections({ System }: Config): ServerSettings['count'] {
  const { MaxConnections: all, MaxConnectionsPerAddress: each } = System.Server
  const table = new SharedTable(createTableMemory(amountShape(1), randomBytes(8)), amountShape(1), 0)
  return createQuota({ all, each }, { all: 'connections', each: 'address_connections' }, createSharedAmount(table, 0))
}

async function listenAt({ listen: endpoints, serves, listener }: OpenEntrypoint): Promise<readonly ListenerAddress[]> {
  // With several sockets on one port the system would not say that another program has it.
  for (const endpoint of endpoints) if (isShared(endpoint)) await assertFree(endpoint)
  const [only] = serves.size === 1 ? serves : []
  const addresses: ListenerAddress[] = []
  for (const endpoint of endpoints) {
    const address = await listener.listen(endpoint)
    addresses.push({ ...address, ...(only && { only }), ...(isShared(endpoint) && { isShared: true }) })
  }
  return addresses
}

function acceptorOf(parts: ListeningParts, { serves }: Entrypoint): Acceptor {
  return createAcceptor({
    ...acceptOptionsOf(parts, serves),
    routeOf: routingOf(parts, serves),
    connectTo: serves.has('forward') ? readConnectTarget : undefined,
  })
}

function acceptOptionsOf(
  { config, onProxy, onManagement, acceptCounts, report }: ListeningParts,
  serves: ReadonlySet<Service>,
) {
  return {
    onProxy,
    onManagement: (incoming: Incoming) => onManagement(incoming, serves),
    counts: acceptCounts,
    report,
    bodyTimeoutMs: config.System.Server.IdleTimeoutSeconds * 1_000,
    takesWebSockets: config.Proxy.AllowUpgrade.length > 0,
    viaName: config.Proxy.Via ? viaName : undefined,
  }
}

type RoutingParts = Pick<ListeningParts, 'config' | 'onSettings'>

/** How an entrypoint routes requests, by the first service there. */
const routings: { readonly [S in Service]: (parts: RoutingParts) => AcceptOptions['routeOf'] } = {
  proxy({ config, onSettings }) {
    const reader = createTargetReader(createVirtualHosts(config.Hosts, publicNames(config)))
    onSettings(next => {
      const made = createVirtualHosts(next.Hosts, publicNames(next))
      return () => reader.use(made)
    })
    return reader.read
  },
  forward: () => readForwardTarget,
  management: () => readOwnTarget,
}

function routingOf(parts: RoutingParts, serves: ReadonlySet<Service>): AcceptOptions['routeOf'] {
  const [first] = serves
  if (first === undefined) throw new Error('cannot happen: an entrypoint without a service')
  return routings[first](parts)
}

const isShared = (endpoint: Endpoint): endpoint is TcpEndpoint => 'host' in endpoint && endpoint.reusePort === true

/** Longest time that a healthy exchange may send the client nothing, with a margin, seconds. */
function longestIdle(config: Config) {
  const { ConnectTimeoutSeconds, HeadersTimeoutSeconds, IdleTimeoutSeconds, EventStreamIdleSeconds } = config.Proxy
  const beforeAnswer = longestWaitSeconds(config) + 3 * ConnectTimeoutSeconds + HeadersTimeoutSeconds
  const silentAnswer = Math.max(IdleTimeoutSeconds, EventStreamIdleSeconds, config.Proxy.UpgradeIdleSeconds)
  return 10 + Math.max(longestWait, beforeAnswer, silentAnswer, config.System.Server.IdleTimeoutSeconds)
}
