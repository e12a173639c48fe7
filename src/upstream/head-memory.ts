import { KnownHead } from '../http/known-head.ts'
import { type Http1Head, readHead } from './http1-head.ts'

const none = Buffer.alloc(0)

/** The last head of an answer on a connection. Upstreams often send the same one again: it is parsed once. */
export class HeadMemory {
  #text = ''
  #method = ''
  #head: Http1Head | undefined
  /** The head with the empty line behind it, once it came again. */
  #bytes = none

  /** `readHead`. The text is kept: it must not be part of a long one. */
  read(text: string, method: string): Http1Head {
    const last = this.#head
    if (last !== undefined && text === this.#text && method === this.#method) {
      last.known ??= new KnownHead()
      if (this.#bytes.length === 0) this.#bytes = Buffer.from(`${text}\r\n`, 'latin1')
      return last
    }
    const head = readHead(text, method)
    this.#text = text
    this.#method = method
    this.#head = head
    this.#bytes = none
    return head
  }

  /** A head that has come more than once, if it begins at this place: its bytes need not be decoded. */
  find(bytes: Buffer, at: number, method: string): Http1Head | undefined {
    const { length } = this.#bytes
    if (length === 0 || method !== this.#method || bytes.length - at < length) return undefined
    return bytes.compare(this.#bytes, 0, length, at, at + length) === 0 ? this.#head : undefined
  }

  /** Bytes of the head that `find` has found. */
  get length(): number {
    return this.#bytes.length
  }
}
