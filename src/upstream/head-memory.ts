import { type Http1Head, readHead } from './http1-head.ts'

/** Longest read whose heads are remembered: a part of a text keeps all of it alive. */
export const mostRemembered = 4_096

/** The last head of an answer on a connection. Upstreams often send the same one again: it is parsed once. */
export class HeadMemory {
  #text = ''
  #method = ''
  #head: Http1Head | undefined

  /** `readHead`, for the head of a short read. */
  read(text: string, method: string): Http1Head {
    if (this.#head !== undefined && text === this.#text && method === this.#method) return this.#head
    const head = readHead(text, method)
    this.#text = text
    this.#method = method
    this.#head = head
    return head
  }
}
