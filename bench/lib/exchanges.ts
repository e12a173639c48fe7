/** A client as plain as can be, so that the load costs as little as possible beside what is measured. */
import type { Socket } from 'node:net'
import { openConnection } from './connection.ts'
import type { Request } from './load.ts'

/** Told of each answer: whether its status was 2xx. */
type OnAnswer = (exchanges: Exchanges, good: boolean) => void

/** End of a body in chunks (RFC 9112 section 7.1). */
const lastChunk = '0\r\n\r\n'

/**
 * One connection: a request, its answer, the next request. A request with `Connection: close` gets a connection of its
 * own each time.
 */
export class Exchanges {
  readonly #request: Request
  readonly #bytes: Buffer
  readonly #fresh: boolean
  #socket: Socket | undefined
  onAnswer: OnAnswer
  /** For the sender. */
  due = 0
  /** What has come of a head. */
  #text = ''
  /** Bytes of the body that are still to come; negative: until the last chunk; undefined: the head is not whole. */
  #left: number | undefined
  /** Status line and fields of the last answer. */
  head = ''

  constructor(request: Request, bytes: Buffer, onAnswer: OnAnswer) {
    this.#request = request
    this.#bytes = bytes
    this.#fresh = request.headers['Connection'] === 'close'
    this.onAnswer = onAnswer
  }

  async open(): Promise<this> {
    if (!this.#fresh) await new Promise<void>(resolve => this.#connect(() => resolve()))
    return this
  }

  send(): void {
    if (this.#fresh) this.#connect(socket => socket.write(this.#bytes))
    else this.#socket?.write(this.#bytes)
  }

  #connect(onReady: (socket: Socket) => void): void {
    const first = openConnection(this.#request, socket => {
      first.off('close', onClose)
      this.#socket = socket
      socket.setEncoding('latin1')
      socket.on('data', (text: string) => this.#read(text))
      // Counts as an answer that was none.
      socket.on('close', () => {
        if (this.#socket === socket) this.#lose('the connection was closed')
      })
      socket.on('error', () => {})
      onReady(socket)
    })
    const onClose = (): void => this.#lose('a connection was closed before it was ready')
    first.on('close', onClose).on('error', () => {})
  }

  #lose(why: string): void {
    this.head = why
    this.onAnswer(this, false)
  }

  #read(text: string): void {
    if (this.#left !== undefined) {
      this.#takeBody(text)
      return
    }
    this.#text += text
    const end = this.#text.indexOf('\r\n\r\n')
    if (end < 0) return
    const head = this.#text.slice(0, end)
    const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1]
    if (length === undefined && !/\r\ntransfer-encoding: *chunked/i.test(head)) {
      throw new Error(`an answer without a length:\n${head}`)
    }
    this.head = head
    this.#left = length === undefined ? -1 : Number(length)
    const body = this.#text.slice(end + 4)
    this.#text = ''
    this.#takeBody(body)
  }

  #takeBody(text: string): void {
    if (this.#left === undefined) return
    if (this.#left < 0) {
      this.#text = (this.#text + text).slice(-lastChunk.length)
      if (this.#text === lastChunk) this.#end()
      return
    }
    this.#left -= text.length
    if (this.#left <= 0) this.#end()
  }

  #end(): void {
    this.#text = ''
    this.#left = undefined
    if (this.#fresh) {
      this.#socket?.end()
      this.#socket = undefined
    }
    this.onAnswer(this, this.head.startsWith('HTTP/1.1 2'))
  }
}

/** Opens so many connections to where the request goes. */
export function openExchanges(request: Request, connections: number, onAnswer: OnAnswer): Promise<Exchanges[]> {
  const bytes = bytesOf(request)
  return Promise.all(Array.from({ length: connections }, () => new Exchanges(request, bytes, onAnswer).open()))
}

function bytesOf({ url, method, headers, body = '', through }: Request): Buffer {
  const { pathname, search, host } = new URL(url)
  const head = [
    `${method} ${through?.form === 'absolute' ? url : pathname + search} HTTP/1.1`,
    `Host: ${host}`,
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    ...(body === '' ? [] : [`Content-Length: ${Buffer.byteLength(body)}`]),
  ]
  return Buffer.from(`${head.join('\r\n')}\r\n\r\n${body}`)
}
