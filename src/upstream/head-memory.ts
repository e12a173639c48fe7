import { KnownHead } from '../http/known-head.ts'
import { type Http1Head, readHead } from './http1-head.ts'

/** The last head of an answer on a connection. Upstreams often send the same one again: it is parsed once. */
export class HeadMemory {
  #text = ''
  #method = ''
  #head: Http1Head | undefined

  /** `readHead`. The text is kept: it must not be part of a long one. */
  read(text: string, method: string): Http1Head {
    if (this.#head !== undefined && text === this.#text && method === this.#method) {
      this.#head.known ??= new KnownHead()
      return this.#head
    }
    const head = readHead(text, method)
    this.#text = text
    this.#method = method
    this.#head = head
    return head
  }
}
