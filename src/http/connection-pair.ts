/** Connections within this process: what is written at one end is read at the other. */
import type { Socket } from 'node:net'
import { Duplex } from 'node:stream'

type Callback = (error?: Error | null) => void

/** One end. It takes no more than the other end reads. */
export class ConnectionEnd extends Duplex {
  #other: ConnectionEnd | undefined
  /** Called when this end wants more. */
  #onRead: (() => void) | undefined
  #sent = 0
  bytesRead = 0

  static join(one: ConnectionEnd, other: ConnectionEnd): void {
    one.#other = other
    other.#other = one
  }

  /** As of a socket: with what waits here. */
  get bytesWritten(): number {
    return this.#sent + this.writableLength
  }

  destroySoon(): void {
    if (this.writableFinished) this.destroy()
    else this.once('finish', () => this.destroy()).end()
  }

  override _read(): void {
    this.#endRead()
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: Callback): void {
    const onRead = (): void => {
      this.#sent += chunk.length
      done()
    }
    if (this.#other === undefined || chunk.length === 0) process.nextTick(onRead)
    else this.#other.#take(chunk, onRead)
  }

  override _final(done: Callback): void {
    this.#other?.push(null)
    done()
  }

  /** The other end can still read what was sent before an end; without one it is cut off. */
  override _destroy(error: Error | null, done: Callback): void {
    const other = this.#other
    this.#other = undefined
    this.#endRead()
    if (other !== undefined) {
      other.#other = undefined
      if (!this.writableFinished) other.destroy()
    }
    done(error)
  }

  /** Copies, as a socket does: the writer uses its memory again. */
  #take(chunk: Buffer, onRead: () => void): void {
    this.bytesRead += chunk.length
    this.#onRead = onRead
    this.push(Buffer.from(chunk))
  }

  #endRead(): void {
    const onRead = this.#onRead
    this.#onRead = undefined
    onRead?.()
  }
}

/** The end of the server, for a client that is connected by another connection. */
export class CarriedConnection extends ConnectionEnd {
  readonly encrypted = true
  readonly #carrier: Socket

  constructor(carrier: Socket) {
    super()
    this.#carrier = carrier
  }

  get remoteAddress(): string | undefined {
    return this.#carrier.remoteAddress
  }

  setKeepAlive(isOn: boolean, afterMs: number): void {
    this.#carrier.setKeepAlive(isOn, afterMs)
  }
}
