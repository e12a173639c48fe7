/** A client as plain as can be, so that the load costs as little as possible beside what is measured. */
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { connect } from 'node:net'
import type { Request } from './load.ts'

/** Told of each answer: whether its status was 2xx. */
type OnAnswer = (exchanges: Exchanges, good: boolean) => void

/** One connection: a request, its answer, the next request. */
export class Exchanges {
  readonly #socket: Socket
  readonly #bytes: Buffer
  onAnswer: OnAnswer
  /** For whoever sends. */
  due = 0
  #text = ''

  constructor(socket: Socket, bytes: Buffer, onAnswer: OnAnswer) {
    this.#socket = socket
    this.#bytes = bytes
    this.onAnswer = onAnswer
    socket.setNoDelay(true)
    socket.setEncoding('latin1')
    socket.on('data', (text: string) => this.#read(text))
    // Counts as an answer that was none.
    socket.on('close', () => this.onAnswer(this, false))
    socket.on('error', () => {})
  }

  send(): void {
    this.#socket.write(this.#bytes)
  }

  #read(text: string): void {
    this.#text += text
    const end = this.#text.indexOf('\r\n\r\n')
    if (end < 0) return
    const length = /\r\ncontent-length: *(\d+)/i.exec(this.#text)?.[1]
    if (length === undefined) throw new Error(`an answer without Content-Length:\n${this.#text}`)
    if (this.#text.length < end + 4 + Number(length)) return
    const good = this.#text.startsWith('HTTP/1.1 2')
    this.#text = ''
    this.onAnswer(this, good)
  }
}

/** Opens so many connections to where the request goes. */
export function openExchanges(request: Request, connections: number, onAnswer: OnAnswer): Promise<Exchanges[]> {
  const { hostname, port } = new URL(request.url)
  const bytes = bytesOf(request)
  return Promise.all(
    Array.from({ length: connections }, async () => {
      const socket = connect(Number(port), hostname)
      await once(socket, 'connect')
      return new Exchanges(socket, bytes, onAnswer)
    }),
  )
}

function bytesOf({ url, method, headers, body = '' }: Request): Buffer {
  const { pathname, search, host } = new URL(url)
  const head = [
    `${method} ${pathname}${search} HTTP/1.1`,
    `Host: ${host}`,
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    ...(body === '' ? [] : [`Content-Length: ${Buffer.byteLength(body)}`]),
  ]
  return Buffer.from(`${head.join('\r\n')}\r\n\r\n${body}`)
}
