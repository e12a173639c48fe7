/** Connections of the load: to a server in the clear or in TLS, or in a tunnel of a proxy. */
import { readFileSync } from 'node:fs'
import { connect, isIP, type Socket } from 'node:net'
import { connect as connectSecurely, createSecureContext, type SecureContext } from 'node:tls'
import type { Request } from './load.ts'

/** A server between, when the URL of a request is not that of what answers it. */
export interface Through {
  /** A forward proxy that gets the whole URL, a server that ends TLS, or a proxy that opens a tunnel, with TLS in it. */
  readonly form: 'absolute' | 'secure' | 'tunnel'
  readonly port: number
  /** Fields of CONNECT. */
  readonly headers?: Readonly<Record<string, string>>
  /** PEM file with the authority of the certificate that it presents. */
  readonly ca?: string | undefined
  /** Sessions of TLS are resumed. */
  readonly resumes?: boolean
}

/** @param onReady called when a request can be written */
export function openConnection({ url, through }: Request, onReady: (connection: Socket) => void): Socket {
  const { hostname, port, host } = new URL(url)
  if (through === undefined || through.form === 'absolute') {
    const socket = connect(through?.port ?? Number(port), through === undefined ? hostname : '127.0.0.1')
    return socket.setNoDelay(true).once('connect', () => onReady(socket))
  }
  const socket = connect(through.port, '127.0.0.1').setNoDelay(true)
  if (through.form === 'secure') return secure(socket, hostname, { through, onReady })
  const authority = port === '' ? `${host}:443` : host
  const fields = Object.entries({ Host: authority, ...through.headers }).map(([name, value]) => `${name}: ${value}\r\n`)
  socket.write(`CONNECT ${authority} HTTP/1.1\r\n${fields.join('')}\r\n`)
  socket.on('error', () => {})
  let head = ''
  const onData = (piece: Buffer): void => {
    head += piece.toString('latin1')
    if (!head.includes('\r\n\r\n')) return
    socket.off('data', onData)
    if (!head.startsWith('HTTP/1.1 200')) throw new Error(`a tunnel was refused: ${head}`)
    secure(socket, hostname, { through, onReady })
  }
  return socket.on('data', onData)
}

interface Securing {
  readonly through: Through
  readonly onReady: (connection: Socket) => void
}

function secure(socket: Socket, host: string, { through, onReady }: Securing): Socket {
  const { ca = '', resumes = false } = through
  const session = resumes ? sessions.get(through) : undefined
  const connection = connectSecurely({
    socket,
    secureContext: contextOf(ca),
    ALPNProtocols: ['http/1.1'],
    // Squid writes an address as a name.
    checkServerIdentity: () => undefined,
    ...(isIP(host) === 0 ? { servername: host } : { host }),
    ...(session === undefined ? {} : { session }),
  })
  if (resumes) connection.on('session', given => sessions.set(through, given))
  const fail = (error: Error): never => {
    throw error
  }
  connection.on('error', fail)
  return connection.once('secureConnect', () => {
    connection.off('error', fail)
    if (session !== undefined && !connection.isSessionReused()) throw new Error('a session was not resumed')
    onReady(connection)
  })
}

const contexts = new Map<string, SecureContext>()
const sessions = new WeakMap<Through, Buffer>()

function contextOf(file: string): SecureContext {
  const known = contexts.get(file) ?? createSecureContext({ ca: readFileSync(file) })
  contexts.set(file, known)
  return known
}
