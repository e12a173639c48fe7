import type { Server, ServerOptions } from 'node:http'
import { createServer as createSecureServer, type Server as SecureServer } from 'node:https'
import { Duplex } from 'node:stream'
import type { TlsOptions } from 'node:tls'
import type { Acceptor } from './accept.ts'
import { type ConnectionLimits, limitConnections } from './connections.ts'
import { createServer } from './node-http.ts'
import { markUnixPeers } from './unix-socket.ts'

export interface ServerSettings extends ConnectionLimits {
  readonly headersTimeoutMs: number
  readonly keepAliveMs: number
  /** TCP connections use TLS when it is set. */
  readonly certificate?: Certificate | undefined
}

/** PEM text: the chain, our own certificate first, and its private key. */
export interface Certificate {
  readonly cert: string
  readonly key: string
}

/** Servers that do not listen yet. One set of limits holds for the connections of all of them. */
export type Servers = ReturnType<typeof createServers>

const maxHeaderSize = 16_384
/** Interval at which node checks for late heads, milliseconds. */
const checkIntervalMs = 2_000
const minVersion = 'TLSv1.2'

export function createServers(settings: ServerSettings, acceptor: Acceptor) {
  const connections = limitConnections(settings)
  const all: Server[] = []
  const secured: SecureServer[] = []
  const options = httpOptions(settings, acceptor)
  let { certificate } = settings

  const take = <S extends Server>(server: S): S => {
    connections.watch(server)
    return serve(server)
  }

  const serve = <S extends Server>(server: S): S => {
    // Node would silently drop the fields beyond its own limit; readFields counts them instead.
    server.maxHeadersCount = 0
    acceptor.serve(keepUnsent(server))
    all.push(server)
    return server
  }

  const takeUnix = (server: Server): Server => {
    // First, since later listeners read the peer.
    markUnixPeers(server)
    return take(server)
  }

  const blank = () => createServer(options)

  const secure = (pair: Certificate): Server => {
    const server = secureServer(options, pair, settings.headersTimeoutMs)
    secured.push(server)
    return take(server)
  }

  return {
    all,
    /** For TCP; TLS when there is a certificate, unless it is to be plain. */
    tcp: (isPlain = false) => (certificate === undefined || isPlain ? take(blank()) : secure(certificate)),
    unix: () => takeUnix(blank()),
    /** A server for connections that are accepted, and counted, elsewhere. */
    adopting(): Server {
      const server = blank()
      connections.adopt(server)
      return beginChecks(serve(server))
    },
    /** A server for a socket of unknown kind. It serves nothing before `begin`. */
    blank,
    /** Takes requests on a blank server. Undefined when it must be a TLS server, which `tcp` gives. */
    begin(server: Server, kind: 'tcp' | 'unix'): Server | undefined {
      if (kind === 'unix') return takeUnix(server)
      return certificate === undefined ? take(server) : undefined
    },
    /** New connections get this certificate. Only for servers that began with one. */
    setCertificate(renewed: Certificate) {
      for (const server of secured) server.setSecureContext({ ...renewed, minVersion })
      certificate = renewed
    },
    destroyConnections: () => connections.destroy(),
  }
}

/** Node closes a connection as idle once its answer was written: at a stop, what the client has yet to take would be lost. */
function keepUnsent(server: Server): Server {
  let isSweeping = false
  const sweep = server.closeIdleConnections
  const closeIdleConnections = (): void => {
    isSweeping = true
    sweep.call(server)
    isSweeping = false
  }
  // One function for all connections of the server.
  function destroy(this: Duplex, error?: Error): Duplex {
    return isSweeping && this.writableLength > 0 ? this : Duplex.prototype.destroy.call(this, error)
  }
  const keep = (socket: Duplex) => void Object.assign(socket, { destroy })
  Object.assign(server, { closeIdleConnections })
  // Of TLS there are two sockets, and node closes the second.
  return server.prependListener('connection', keep).prependListener('secureConnection', keep)
}

function secureServer(options: ServerOptions, pair: Certificate, handshakeTimeout: number): SecureServer {
  const tls: TlsOptions = { ...pair, minVersion, handshakeTimeout, ALPNProtocols: ['http/1.1'] }
  const server = createSecureServer({ ...options, ...tls })
  // An answer would have to be encrypted, which is impossible here.
  server.prependListener('tlsClientError', (_, socket) => socket.destroy())
  return server
}

/** Node looks for late heads once a server listens, which this one never does. */
function beginChecks(server: Server): Server {
  server.emit('listening')
  return server
}

function httpOptions({ headersTimeoutMs, keepAliveMs }: ServerSettings, acceptor: Acceptor): ServerOptions {
  return {
    requireHostHeader: true,
    headersTimeout: headersTimeoutMs,
    // A proxied body has no total time limit while it moves; a stalled one is ended by its reader.
    requestTimeout: 0,
    keepAliveTimeout: keepAliveMs,
    connectionsCheckingInterval: checkIntervalMs,
    maxHeaderSize,
    insecureHTTPParser: false,
    noDelay: true,
    // A request without the fields of a body has ended from the start: it emits neither `end` nor `close`.
    optimizeEmptyRequests: true,
    // Other upgrades are ignored: the request is answered as if it did not ask for one.
    shouldUpgradeCallback: req => acceptor.upgrades(req),
  }
}
