import { resolve } from 'node:path'
import type { Config } from '../config/schema.ts'
import { StartupError } from '../errors.ts'
import type { Acceptor } from '../http/accept.ts'
import type { Address, Listener, Place } from '../http/listeners.ts'
import { createListener } from '../http/listeners.ts'
import { longestWait } from '../http/prefer.ts'
import type { Certificate } from '../http/servers.ts'
import type { Log } from '../log.ts'
import { createPeerOf } from '../pipeline/client-ip.ts'
import type { Egress } from '../upstream/egress.ts'
import { describeCertificate, readCertificate } from './certificate.ts'

export interface ListeningParts {
  readonly config: Config
  readonly baseDirectory: string
  readonly certificate: Certificate | undefined
  /** Descriptors of sockets that were passed to this process. */
  readonly passedSockets: readonly number[]
  readonly egress: Egress
  readonly log: Log
}

/** Where clients reach the gateway. */
export interface Listening extends Pick<Listener, 'drain' | 'destroy'> {
  /** Opens every place to listen on; at least one. */
  listen(): Promise<readonly Address[]>
  /** Reads the certificate anew. False: it cannot be used, and the old one stays. */
  reload(): Promise<boolean>
}

export function createListening(parts: ListeningParts, acceptor: Acceptor): Listening {
  const { config, baseDirectory, certificate, egress, log } = parts
  const { Server } = config.System
  const listener = createListener(
    {
      maxConnections: Server.MaxConnections,
      maxConnectionsPerPeer: Server.MaxConnectionsPerAddress,
      peerOf: createPeerOf(Server.TrustedProxies),
      headersTimeoutMs: Server.HeadersTimeoutSeconds * 1_000,
      keepAliveMs: Server.KeepAliveSeconds * 1_000,
      quietMs: longestQuiet(config) * 1_000,
      certificate,
    },
    acceptor,
  )
  return {
    drain: () => listener.drain(),
    destroy: () => listener.destroy(),
    async listen() {
      const addresses: Address[] = []
      for (const place of placesOf(parts)) addresses.push(await listener.listen(place))
      egress.setListeners(addresses.flatMap(({ port }) => port ?? []))
      return addresses
    },
    async reload() {
      try {
        const renewed = await readCertificate(config, baseDirectory)
        if (renewed === undefined) return true
        listener.setCertificate(renewed)
        log.info({}, `certificate read anew: ${describeCertificate(renewed)}`)
        return true
      } catch (error) {
        log.error({ error }, 'the certificate could not be read anew, the old one stays')
        return false
      }
    },
  }
}

/** Sockets that were passed stand in for the configured port: whoever passed them has chosen. */
function placesOf({ config, baseDirectory, passedSockets }: ListeningParts): readonly Place[] {
  const { Http, Unix } = config.System.Server
  const passed = passedSockets.map(fd => ({ fd }))
  const tcp = Http.Enabled && passed.length === 0 ? [{ host: Http.Host, port: Http.Port }] : []
  const unix =
    Unix.Path === undefined ? [] : [{ path: resolve(baseDirectory, Unix.Path), mode: Number.parseInt(Unix.Mode, 8) }]
  const places = [...passed, ...tcp, ...unix]
  if (places.length > 0) return places
  throw new StartupError(
    'There is nothing to listen on. Set System:Server:Unix:Path, or System:Server:Http:Enabled to true.',
  )
}

/** Seconds that a sound exchange may take without a byte on the client's connection, and some more. */
function longestQuiet({ System, Proxy: { ConnectTimeoutSeconds, HeadersTimeoutSeconds, IdleTimeoutSeconds } }: Config) {
  const beforeAnswer = HeadersTimeoutSeconds + 3 * ConnectTimeoutSeconds + HeadersTimeoutSeconds
  return 10 + Math.max(longestWait, beforeAnswer, IdleTimeoutSeconds, System.Server.IdleTimeoutSeconds)
}
