import type { Server } from 'node:http'
import { createServer } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { StartupError } from '../errors.ts'
import type { Acceptor } from './accept.ts'
import { limitConnections } from './connections.ts'
import { closeQuiet } from './quiet.ts'

export interface ListenerOptions {
  /** Open connections of all listeners together. */
  readonly maxConnections: number
  /** Open connections of one peer; 0 is no limit. */
  readonly maxConnectionsPerPeer: number
  /** What connections are counted by; those without are not counted. */
  readonly peerOf: (socket: Socket) => string | undefined
  readonly headersTimeoutMs: number
  readonly keepAliveMs: number
  /** A connection on which nothing moves this long is closed. */
  readonly quietMs: number
}

/** Where to listen. */
export interface TcpPlace {
  readonly host: string
  readonly port: number
  /** Several sockets may have the same port, one in each thread: the system shares connections out among them. */
  readonly reusePort?: boolean
}

export type Place = TcpPlace

/** A place that is listened on. */
export interface Address {
  /** For people and for clients: `http://127.0.0.1:7080`. */
  readonly url: string
  readonly port: number
}

export interface Listener {
  /** Opens one more place. */
  listen(place: Place): Promise<Address>
  /** Stops accepting and resolves when the last connection is closed. */
  drain(): Promise<void>
  /** Cuts off every connection. */
  destroy(): void
}

const maxHeaderSize = 16_384
/** How often node looks for heads that are late. */
const checkIntervalMs = 2_000

/** Listens in any number of places; whatever comes in any of them goes to the one acceptor. */
export function createListener(options: ListenerOptions, acceptor: Acceptor): Listener {
  const limit = limitConnections(options)
  const servers: Server[] = []

  const create = (): Server => {
    const server = createServer({
      requireHostHeader: true,
      headersTimeout: options.headersTimeoutMs,
      // A proxied body that moves has no total limit; one that stands still is cut off by whoever reads it.
      requestTimeout: 0,
      keepAliveTimeout: options.keepAliveMs,
      connectionsCheckingInterval: checkIntervalMs,
      maxHeaderSize,
      insecureHTTPParser: false,
      noDelay: true,
      // An upgrade is never taken: the request is answered as if it had not been asked for.
      shouldUpgradeCallback: () => false,
    })
    // Node would drop the fields beyond its own limit without a word; readFields counts them instead.
    server.maxHeadersCount = 0
    limit(server)
    closeQuiet(server, options.quietMs)
    acceptor.serve(server)
    servers.push(server)
    return server
  }

  return {
    listen: place => listenTcp(create(), place),
    async drain() {
      acceptor.drain()
      const closed = servers.map(server => new Promise<void>(resolve => server.close(() => resolve())))
      // A connection becomes idle only after its last answer: look again until none is left.
      const sweeper = setInterval(() => {
        for (const server of servers) server.closeIdleConnections()
      }, 100)
      await Promise.all(closed).finally(() => clearInterval(sweeper))
    },
    destroy() {
      for (const server of servers) server.closeAllConnections()
    },
  }
}

async function listenTcp(server: Server, place: TcpPlace): Promise<Address> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => reject(tcpProblem(error, place)))
    server.listen(place, resolve)
  })
  const { address, family, port } = server.address() as AddressInfo
  return { url: `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`, port }
}

function tcpProblem(error: NodeJS.ErrnoException, { host, port }: TcpPlace): Error {
  const where = `${host}:${port}`
  switch (error.code) {
    case 'EADDRINUSE':
      return new StartupError(`${where} is taken. Stop what listens there, or set System:Server:Http:Port.`)
    case 'EACCES':
      return new StartupError(`${where} needs rights this user does not have. Set System:Server:Http:Port above 1023.`)
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
      return new StartupError(`${host} is not an address of this machine. Set System:Server:Http:Host.`)
    default:
      return error
  }
}
