/** Requests of HTTP/2, each as a request of HTTP/1.1 on a connection of its own within this process. */
import type { ClientRequest, IncomingMessage } from 'node:http'
import { constants, type ServerHttp2Stream } from 'node:http2'
import type { Duplex } from 'node:stream'
import { asError } from '../base/as-error.ts'
import { http1Head, http2Fields } from './http2-heads.ts'
import { request as openRequest } from './node-http.ts'

/** Heads of answers come from the gateway itself, which has checked them. */
const maxHeaderSize = 1_048_576

/** @param isCancelled the client has left before the answer was over */
export type OnStreamEnd = (isCancelled: boolean) => void

/**
 * To be called once the server has closed its end: then nothing else watches that the client takes the answer.
 *
 * @param stalledMs longest time in which the client takes nothing of what is left
 */
export type LimitRest = (stalledMs: number) => void

/**
 * Serves a stream over a connection to the server of HTTP/1.1.
 *
 * @param raw header fields as received, flat
 * @param connection its end of the client
 */
export function relayStream(
  stream: ServerHttp2Stream,
  raw: readonly string[],
  connection: Duplex,
  onEnd: OnStreamEnd,
): LimitRest {
  const relay = new StreamRelay(stream, connection, onEnd)
  relay.start(raw)
  return stalledMs => relay.limitRest(stalledMs)
}

class StreamRelay {
  readonly #stream: ServerHttp2Stream
  readonly #connection: Duplex
  readonly #onEnd: OnStreamEnd
  #request: ClientRequest | undefined
  /** The answer has ended, or was broken off. */
  #isOver = false
  #isEnded: boolean
  /** Runs while the client takes nothing of the rest of the answer. */
  #stalled: NodeJS.Timeout | undefined

  constructor(stream: ServerHttp2Stream, connection: Duplex, onEnd: OnStreamEnd) {
    this.#stream = stream
    this.#connection = connection
    this.#onEnd = onEnd
    this.#isEnded = stream.endAfterHeaders
  }

  start(raw: readonly string[]): void {
    const stream = this.#stream
    stream.on('error', () => {}).once('close', () => this.#close())
    try {
      const { method, target: path, fields: headers } = http1Head(raw, this.#isEnded)
      const createConnection = (): Duplex => this.#connection
      const request = openRequest({ method, path, headers, maxHeaderSize, createConnection })
      this.#request = request
      request.on('response', answer => this.#answer(answer))
      // An answer to CONNECT, which is always refused.
      request.on('connect', answer => this.#respond(answer, true))
      request.on('information', ({ statusCode, rawHeaders }) => this.#inform(statusCode, rawHeaders))
      request.on('error', () => this.#break())
      if (this.#isEnded) request.end()
      else this.#upload(request)
    } catch {
      stream.close(constants.NGHTTP2_PROTOCOL_ERROR)
    }
  }

  limitRest(stalledMs: number): void {
    if (!this.#stream.destroyed) this.#stalled = setTimeout(() => this.#cancel(), stalledMs)
  }

  #upload(request: ClientRequest): void {
    const stream = this.#stream
    request.flushHeaders()
    this.#noteEnd()
    stream.on('data', (chunk: Buffer) => {
      if (!request.write(chunk)) stream.pause()
    })
    request.on('drain', () => stream.resume())
    stream.once('end', () => {
      if (this.#isEnded) request.end()
      else this.#connection.destroy()
    })
  }

  /** Node ends the body of a stream that was reset as well, but by then the stream is closed. */
  #noteEnd(): void {
    const stream = this.#stream
    const { push } = stream
    const noting: typeof push = (chunk, encoding) => {
      if (chunk === null && !stream.closed) this.#isEnded = true
      return push.call(stream, chunk, encoding)
    }
    stream.push = noting
  }

  #inform(status: number, fields: readonly string[]): void {
    if (this.#stream.closed || this.#stream.headersSent) return
    this.#stream.additionalHeaders({ ...http2Fields(fields), ':status': status })
  }

  /**
   * Clients of gRPC take a status in the head for the end only if the stream ends there, so such a head waits for what
   * follows.
   */
  #answer(answer: IncomingMessage): void {
    if (answer.headers['grpc-status'] === undefined) this.#pass(answer)
    else {
      answer.once('readable', () => {
        const isEmpty = answer.complete && answer.readableLength === 0 && answer.rawTrailers.length === 0
        if (!isEmpty) this.#pass(answer)
        else if (!this.#respond(answer, true)) answer.resume()
      })
    }
  }

  #pass(answer: IncomingMessage): void {
    const stream = this.#stream
    if (!this.#respond(answer, false)) {
      answer.resume()
      return
    }
    stream.on('drain', () => {
      this.#stalled?.refresh()
      answer.resume()
    })
    answer.on('data', (chunk: Buffer) => {
      if (!stream.write(chunk)) answer.pause()
    })
    answer.once('close', () => {
      if (answer.complete) this.#finish()
      else this.#break()
    })
    answer.on('error', () => {})
    stream.once('wantTrailers', () => {
      stream.sendTrailers(http2Fields(answer.rawTrailers))
      this.#endUpload()
    })
  }

  /** Returns whether a body follows. */
  #respond({ statusCode = 0, rawHeaders }: IncomingMessage, isWhole: boolean): boolean {
    const stream = this.#stream
    if (stream.closed || stream.destroyed) return false
    const fields = http2Fields(rawHeaders)
    if (isWhole) delete fields['content-length']
    // Node's types lack the option about the date, which the answer has if it needs one.
    const options = { endStream: isWhole, waitForTrailers: !isWhole, sendDate: false }
    try {
      stream.respond({ ...fields, ':status': statusCode }, options)
      this.#isOver = stream.writableEnded
      if (this.#isOver) this.#endUpload()
      return !this.#isOver
    } catch (error) {
      stream.destroy(asError(error))
      return false
    }
  }

  #finish(): void {
    this.#isOver = true
    this.#stream.end()
  }

  /** What is left of a request that was answered is not wanted (RFC 9113 section 8.1). */
  #endUpload(): void {
    const stream = this.#stream
    if (!this.#isEnded) setImmediate(() => stream.close(constants.NGHTTP2_NO_ERROR))
  }

  /** A stream that was ended waits for the client to make room (RFC 9113 section 6.9) as long as it is not destroyed. */
  #cancel(): void {
    if (this.#isOver) {
      this.#stream.close(constants.NGHTTP2_CANCEL)
      this.#stream.destroy()
    } else this.#break()
  }

  /** The client sees that the answer is not whole. */
  #break(): void {
    if (this.#isOver) return
    this.#isOver = true
    // `close` would end the stream first, and the answer would look whole.
    this.#stream.destroy(new Error('the answer was broken off'))
  }

  #close(): void {
    clearTimeout(this.#stalled)
    this.#request?.destroy()
    this.#connection.destroy()
    this.#onEnd(!this.#isOver)
  }
}
