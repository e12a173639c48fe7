import { once } from 'node:events'
import type { Server } from 'node:http'
import { createServer, type Server as NetServer } from 'node:net'
import type { Duplex } from 'node:stream'
import { asError } from '../base/as-error.ts'
import { StartupError } from '../base/refusals.ts'
import { SlotList, type Slotted } from '../base/slot-list.ts'
import type { Acceptor } from './accept.ts'
import { type Certificate, createServers, type ServerSettings, type Servers } from './servers.ts'
import type { Service } from './service.ts'
import { listenUnix, type UnixEndpoint } from './unix-socket.ts'

export interface TcpEndpoint {
  readonly host: string
  readonly port: number
  /** Several sockets may have the same port, one in each thread: the system shares connections out among them. */
  readonly reusePort?: boolean
  /** Not TLS, even if there is a certificate. */
  readonly isPlain?: boolean
  /** Section of the settings with its `Host` and `Port`, for error messages. */
  readonly setting: string
}

/** A socket, TCP or unix, bound by the process that started this one. */
export interface PassedEndpoint {
  readonly fd: number
  /** Name from that process, if it gave one. */
  readonly name?: string
}

export type Endpoint = TcpEndpoint | UnixEndpoint | PassedEndpoint

export interface ListenerAddress {
  /** For people and for clients: `http://127.0.0.1:7080`, `unix:/run/agent-gateway.sock`. */
  readonly url: string
  /** Undefined for endpoints other than TCP. */
  readonly port: number | undefined
  /** Set when this is the only service there. */
  readonly only?: Service
  /** Every thread listens on this port. */
  readonly isShared?: true
}

export type Listener = ReturnType<typeof createListener>

interface Adopted extends Slotted {
  readonly connection: Duplex
}

/**
 * Listens at any number of endpoints; one acceptor takes the requests of all of them.
 *
 * @param adopts what an adopted connection carries: one call, or calls one after another
 */
export function createListener(settings: ServerSettings, acceptor: Acceptor, adopts: 'call' | 'calls' = 'call') {
  const servers = createServers(settings, acceptor)
  /** Functions that remove the files of closed unix sockets. */
  const removals: (() => void)[] = []
  let adopting: Server | undefined
  const adopted = new SlotList<Adopted>()

  return {
    /**
     * Opens one more endpoint.
     *
     * @throws StartupError when the system refuses
     */
    async listen(endpoint: Endpoint): Promise<ListenerAddress> {
      if ('path' in endpoint) {
        removals.push(await listenUnix(servers.unix(), endpoint))
        return { url: `unix:${endpoint.path}`, port: undefined }
      }
      const isPlain = settings.certificate === undefined || ('isPlain' in endpoint && endpoint.isPlain === true)
      const server =
        'fd' in endpoint ? await listenPassed(servers, endpoint) : await listenTcp(servers.tcp(isPlain), endpoint)
      const address = server.address()
      if (address === null || typeof address === 'string') {
        // Node knows no address of a unix socket that was passed, and no other endpoint gets here.
        return { url: `unix: (descriptor ${(endpoint as PassedEndpoint).fd})`, port: undefined }
      }
      const host = address.family === 'IPv6' ? `[${address.address}]` : address.address
      return { url: `${isPlain ? 'http' : 'https'}://${host}:${address.port}`, port: address.port }
    },
    /** Serves a connection that was accepted, and is counted, elsewhere. */
    adopt(connection: Duplex) {
      adopting ??= servers.adopting()
      const entry = { connection, slot: -1 }
      adopted.add(entry)
      connection.once('close', () => adopted.remove(entry))
      adopting.emit('connection', connection)
    },
    /** New connections get this certificate. Only for a listener that was created with one. */
    setCertificate: (certificate: Certificate) => servers.setCertificate(certificate),
    /** Stops accepting and resolves when the last connection is closed. */
    async drain() {
      acceptor.drain()
      // One call may not have been read yet, and its connection ends by itself.
      const others = servers.all.filter(server => server !== adopting || adopts === 'calls')
      const closed = closeAll(others, () => adopted.size > 0)
      for (const remove of removals.splice(0)) remove()
      await closed
      if (adopted.size === 0) adopting?.close()
    },
    /** Closes every connection at once. */
    destroy() {
      servers.destroyConnections()
      for (const { connection } of adopted.all()) connection.destroy()
    },
  }
}

/** Resolves when all connections of the servers are closed, and nothing else is left. */
async function closeAll(servers: readonly Server[], isLeft: () => boolean): Promise<void> {
  const closed = servers.map(server => new Promise<void>(resolve => server.close(() => resolve())))
  const gone = Promise.withResolvers<void>()
  // A connection becomes idle only after its last answer: repeat until all are closed.
  const sweeper = setInterval(() => {
    for (const server of servers) server.closeIdleConnections()
    if (!isLeft()) gone.resolve()
  }, 100)
  if (!isLeft()) gone.resolve()
  await Promise.all([...closed, gone.promise]).finally(() => clearInterval(sweeper))
}

async function listenTcp<S extends NetServer>(server: S, endpoint: TcpEndpoint): Promise<S> {
  try {
    const { host, port, reusePort = false } = endpoint
    server.listen({ host, port, reusePort })
    await once(server, 'listening')
    return server
  } catch (error) {
    throw tcpProblem(asError(error), endpoint)
  }
}

/**
 * Checks that nothing listens on a port, by listening on it alone for a moment.
 *
 * @throws StartupError when the port is not free
 */
export async function assertFree(endpoint: TcpEndpoint): Promise<void> {
  const server = createServer()
  await listenTcp(server, { ...endpoint, reusePort: false })
  server.close()
  await once(server, 'close')
}

function tcpProblem(error: NodeJS.ErrnoException, { host, port, setting }: TcpEndpoint): Error {
  const where = `${host}:${port}`
  switch (error.code) {
    case 'EADDRINUSE':
      return new StartupError(`${where} is in use. Stop what listens there, or set ${setting}:Port.`)
    case 'EACCES':
      return new StartupError(
        `${where} needs permissions that this user does not have. Set ${setting}:Port above 1023.`,
      )
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
      return new StartupError(`${host} is not an address of this machine. Set ${setting}:Host.`)
    default:
      return error
  }
}

/** The kind of the socket is known only once it is open, and decides whether it is for TLS. */
async function listenPassed(servers: Servers, { fd }: PassedEndpoint): Promise<Server> {
  const server = servers.blank()
  try {
    server.listen({ fd })
    await once(server, 'listening')
  } catch (error) {
    const { code } = asError(error)
    throw new StartupError(`Descriptor ${fd}, passed with LISTEN_FDS, is not a listening socket (${code}).`)
  }
  // Node knows the address of TCP sockets only.
  const begun = servers.begin(server, server.address() === null ? 'unix' : 'tcp')
  if (begun !== undefined) return begun
  const secure = servers.tcp()
  secure.listen(server)
  await once(secure, 'listening')
  return secure
}
