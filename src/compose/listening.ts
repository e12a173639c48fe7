import { resolve } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import type { Config } from '../config/schema.ts'
import { StartupError } from '../errors.ts'
import { type AcceptOptions, createAcceptor } from '../http/accept.ts'
import {
  type Address,
  assertFree,
  createListener,
  type Listener,
  type Place,
  type TcpPlace,
} from '../http/listeners.ts'
import { longestWait } from '../http/prefer.ts'
import type { Certificate } from '../http/servers.ts'
import { createVirtualHosts } from '../http/virtual-hosts.ts'
import { createPeerOf } from '../pipeline/client-ip.ts'
import { viaName } from '../pipeline/hops.ts'
import type { Bounds } from '../telemetry/bounds.ts'
import type { Egress } from '../upstream/egress.ts'
import type { Base } from './base.ts'
import { describeCertificate, readCertificate } from './certificate.ts'
import type { SharedLimits } from './shared.ts'
import { longestWaitSeconds } from './upstreams.ts'

export interface ListeningParts
  extends Pick<AcceptOptions, 'onProxy' | 'onOwn' | 'counts' | 'report'>,
    Pick<Base, 'config' | 'baseDirectory' | 'log'> {
  readonly certificate: Certificate | undefined
  /** Descriptors of sockets that were passed to this process. */
  readonly passedSockets: readonly number[]
  readonly egress: Egress
  readonly limits: Pick<SharedLimits, 'connections'>
  readonly bounds: Bounds
}

/** Turns of the event loop that exchanges may take to end after their connections were cut off. */
const longestEnd = 100

/** Where clients reach the gateway. */
export interface Listening extends Pick<Listener, 'adopt'> {
  /** Opens every place to listen on; at least one. */
  listen(): Promise<readonly Address[]>
  /** Listens on the TCP port that another thread has opened, and serves its share of the connections. */
  join(port: number): Promise<void>
  /**
   * Stops accepting and lets what is under way finish, for `limitMs` at most. Resolves with what `inFlight` gave when
   * the rest was cut off; 0 when nothing was.
   */
  drain(limitMs: number, inFlight: () => number): Promise<number>
  /** Reads the certificate again. False: it cannot be used, and the old one stays in force. */
  reload(): Promise<boolean>
}

export function createListening(parts: ListeningParts): Listening {
  const { config, baseDirectory, certificate, egress, log } = parts
  const { Server } = config.System
  const listener = createListener(
    {
      maxConnections: Server.MaxConnections,
      count: parts.limits.connections,
      onRefused: (bound, peer) => parts.bounds.reached(bound, undefined, undefined, peer),
      peerOf: createPeerOf(Server.TrustedProxies),
      headersTimeoutMs: Server.HeadersTimeoutSeconds * 1_000,
      keepAliveMs: Server.KeepAliveSeconds * 1_000,
      quietMs: longestQuiet(config) * 1_000,
      certificate,
    },
    acceptorOf(parts),
  )
  return {
    adopt: connection => listener.adopt(connection),
    async join(port) {
      await listener.listen({ host: Server.Http.Host, port, reusePort: true })
    },
    async drain(limitMs, inFlight) {
      let cutOff = 0
      const timer = setTimeout(() => {
        cutOff = inFlight()
        listener.destroy()
      }, limitMs)
      await listener.drain().finally(() => clearTimeout(timer))
      // An exchange ends, and is logged, some turns after its connection was cut off.
      for (let turn = 0; inFlight() > 0 && turn < longestEnd; turn++) await setImmediate()
      return cutOff
    },
    async listen() {
      const places = placesOf(parts)
      // With several sockets on one port the system would not say that another program has it.
      for (const place of places) if (isShared(place)) await assertFree(place)
      const addresses: Address[] = []
      for (const place of places) addresses.push(await listener.listen(place))
      egress.setListeners(addresses.flatMap(({ port }) => port ?? []))
      return addresses
    },
    async reload() {
      try {
        const renewed = await readCertificate(config, baseDirectory)
        if (renewed === undefined) return true
        listener.setCertificate(renewed)
        log.info({}, `certificate reloaded: ${describeCertificate(renewed)}`)
        return true
      } catch (error) {
        log.error({ error }, 'the certificate could not be reloaded; the old one stays in use')
        return false
      }
    },
  }
}

function acceptorOf({ config, onProxy, onOwn, counts, report }: ListeningParts) {
  const bodyTimeoutMs = config.System.Server.IdleTimeoutSeconds * 1_000
  return createAcceptor({
    onProxy,
    onOwn,
    counts,
    report,
    bodyTimeoutMs,
    hosts: createVirtualHosts(config.Hosts),
    takesWebSockets: config.Proxy.AllowUpgrade.length > 0,
    viaName: config.Proxy.Via ? viaName : undefined,
  })
}

/** Passed sockets replace the configured port. */
function placesOf({ config, baseDirectory, passedSockets }: ListeningParts): readonly Place[] {
  const { Http, Unix, Threads } = config.System.Server
  const passed = passedSockets.map(fd => ({ fd }))
  const tcp = Http.Enabled && passed.length === 0 ? [{ host: Http.Host, port: Http.Port, reusePort: Threads > 1 }] : []
  const unix =
    Unix.Path === undefined ? [] : [{ path: resolve(baseDirectory, Unix.Path), mode: Number.parseInt(Unix.Mode, 8) }]
  const places = [...passed, ...tcp, ...unix]
  if (places.length > 0) return places
  throw new StartupError(
    'There is nothing to listen on. Set System:Server:Unix:Path, or System:Server:Http:Enabled to true.',
  )
}

const isShared = (place: Place): place is TcpPlace => 'host' in place && place.reusePort === true

/** Longest time that a healthy exchange may send the client nothing, with a margin, seconds. */
function longestQuiet(config: Config) {
  const { ConnectTimeoutSeconds, HeadersTimeoutSeconds, IdleTimeoutSeconds, EventStreamIdleSeconds } = config.Proxy
  const beforeAnswer = longestWaitSeconds(config) + 3 * ConnectTimeoutSeconds + HeadersTimeoutSeconds
  const silentAnswer = Math.max(IdleTimeoutSeconds, EventStreamIdleSeconds, config.Proxy.UpgradeIdleSeconds)
  return 10 + Math.max(longestWait, beforeAnswer, silentAnswer, config.System.Server.IdleTimeoutSeconds)
}
