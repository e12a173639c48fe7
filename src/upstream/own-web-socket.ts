/** A WebSocket of the gateway itself, past the egress guard and with TLS that is verified. */
import type { Socket } from 'node:net'
import { connect as connectTls, getCACertificates } from 'node:tls'
import type { OwnRequests } from './own-requests.ts'

export interface OwnWebSocketParts extends Pick<OwnRequests, 'connect'> {
  /** PEM text of certificate authorities trusted beside the built-in ones. */
  readonly ca?: string | undefined
}

/** The part of a WebSocket that is used. */
export interface OwnWebSocket {
  send(text: string): void
  close(): void
}

export interface WebSocketHandlers {
  readonly onText: (text: string) => void
  /** Called once, also when no connection came about. */
  readonly onClose: () => void
}

const maxMessageBytes = 1_048_576
const connectMs = 10_000
const closeMs = 1_000

/** Resolves when the connection is open; rejects when there is none within ten seconds. */
export async function openOwnWebSocket(
  { connect, ca }: OwnWebSocketParts,
  url: string,
  { onText, onClose }: WebSocketHandlers,
): Promise<OwnWebSocket> {
  // Loaded only when it is used: it takes memory and time.
  const { Agent, WebSocket } = await import('undici')
  const late = AbortSignal.timeout(connectMs)
  const authorities = ca === undefined ? {} : { ca: [...getCACertificates('default'), ca] }
  let tcp: Socket | undefined
  const dial = async (host: string, port: number, isSecure: boolean): Promise<Socket> => {
    tcp = await connect(host, port, late)
    return isSecure ? secured(tcp, { servername: host, ...authorities }) : tcp
  }
  const dispatcher = new Agent({
    connect: ({ hostname, port, protocol }, done) => {
      const isSecure = protocol === 'https:'
      dial(hostname, Number(port) || (isSecure ? 443 : 80), isSecure).then(
        socket => done(null, socket),
        error => done(error, null),
      )
    },
    webSocket: { maxPayloadSize: maxMessageBytes },
  })
  const socket = new WebSocket(url, { dispatcher })
  const { promise, resolve, reject } = Promise.withResolvers<OwnWebSocket>()
  const close = (): void => {
    socket.close()
    // A peer that does not answer keeps nothing open.
    setTimeout(() => tcp?.destroy(), closeMs).unref()
  }
  late.addEventListener('abort', () => reject(new Error('no WebSocket in time')))
  socket.addEventListener('open', () => resolve({ send: text => socket.send(text), close }))
  socket.addEventListener('message', ({ data }) => {
    if (typeof data === 'string') onText(data)
  })
  socket.addEventListener('close', () => {
    reject(new Error('the WebSocket was refused or closed'))
    onClose()
    void dispatcher.destroy()
  })
  socket.addEventListener('error', () => {})
  return promise.catch(error => {
    close()
    throw error
  })
}

function secured(socket: Socket, names: Readonly<Record<string, unknown>>): Promise<Socket> {
  const { promise, resolve, reject } = Promise.withResolvers<Socket>()
  // Even if NODE_TLS_REJECT_UNAUTHORIZED is 0.
  const secure = connectTls({ socket, rejectUnauthorized: true, ALPNProtocols: ['http/1.1'], ...names })
  secure.once('secureConnect', () => resolve(secure)).once('error', reject)
  return promise
}
