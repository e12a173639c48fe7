import { Duplex } from 'node:stream'
import type { MessagePort } from 'node:worker_threads'

/** `more`: the last bytes were read, the next may be sent. `end`: no more bytes follow. */
type PortMessage = Uint8Array<ArrayBuffer> | 'more' | 'end'

/** Addresses of the connection of a client: remote and local. */
export interface SocketEnds {
  readonly remoteAddress?: string | undefined
  readonly localAddress?: string | undefined
  readonly localPort?: number | undefined
}

/** A connection between two threads, with back-pressure: for node:http it is a socket like any other. */
export class PortStream extends Duplex implements SocketEnds {
  readonly remoteAddress: string | undefined
  readonly localAddress: string | undefined
  readonly localPort: number | undefined
  bytesRead = 0
  bytesWritten = 0
  readonly #port: MessagePort
  #written: (() => void) | undefined
  #owesMore = false

  /** @param ends of the client it was opened for */
  constructor(port: MessagePort, ends: SocketEnds = {}) {
    super({ allowHalfOpen: true })
    this.#port = port
    this.remoteAddress = ends.remoteAddress
    this.localAddress = ends.localAddress
    this.localPort = ends.localPort
    port.on('message', (message: PortMessage) => this.#receive(message))
    port.on('close', () => this.destroy())
  }

  /** node:http calls it to end a connection once everything is written. */
  destroySoon(): void {
    if (this.writable) this.end()
    if (this.writableFinished) this.destroy()
    else this.once('finish', () => this.destroy())
  }

  override _read(): void {
    if (!this.#owesMore) return
    this.#owesMore = false
    this.#port.postMessage('more')
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    // Copied, so that it can be transferred: a small Buffer is part of a pool, and all of the pool would be sent.
    const bytes = new Uint8Array(chunk)
    this.bytesWritten += bytes.length
    this.#written = done
    this.#port.postMessage(bytes, [bytes.buffer])
  }

  override _final(done: () => void): void {
    this.#port.postMessage('end')
    done()
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#port.close()
    done(error)
  }

  #receive(message: PortMessage): void {
    if (message === 'end') this.push(null)
    else if (message === 'more') {
      const written = this.#written
      this.#written = undefined
      written?.()
    } else {
      this.bytesRead += message.length
      this.#owesMore = true
      if (this.push(Buffer.from(message.buffer, message.byteOffset, message.length))) this._read()
    }
  }
}
