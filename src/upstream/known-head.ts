/** Heads of answers that come again: the text of such a head is parsed once, and its head for the agent written once. */
import { requestIdField } from '../http/names.ts'
import type { WithHead } from '../http/take-back.ts'

const framedByLength = /\r\nContent-Length: \d+\r\n/i
const kept = /\r\nConnection: keep-alive\r\n/

/**
 * The head of answers that are equal but for their request id, as node has written the first of them: node checks and joins the
 * fields of each head anew, which costs a twentieth of a small request.
 */
export class KnownHead {
  /** No answer with it was written yet. */
  isNew = true
  #keepAliveMs: number | undefined = 0
  #status = 0
  #reason = ''
  #before = ''
  #after = ''

  /** Whether it can be written: connections are not kept as long at each entrypoint, and node says for how long. */
  fits({ _keepAliveTimeout }: WithHead): boolean {
    return this.#status !== 0 && this.#keepAliveMs === _keepAliveTimeout
  }

  /** Notes a head that was just written by `writeHead`, and is not sent yet. */
  note(res: WithHead, requestId: string): void {
    const head = res._header ?? ''
    // Node keeps beside the text how it frames the body and whether it closes: the text alone stands for a fresh response.
    if (res.chunkedEncoding || !framedByLength.test(head) || !kept.test(head)) return
    const at = head.indexOf(`\r\n${requestIdField}: ${requestId}\r\n`)
    if (at < 0) return
    const id = at + requestIdField.length + 4
    this.#keepAliveMs = res._keepAliveTimeout
    this.#status = res.statusCode
    this.#reason = res.statusMessage
    this.#before = head.slice(0, id)
    this.#after = head.slice(id + requestId.length)
  }

  /** In place of `writeHead`. */
  write(res: WithHead, requestId: string): void {
    res.statusCode = this.#status
    res.statusMessage = this.#reason
    res._header = this.#before + requestId + this.#after
  }
}

const none = Buffer.alloc(0)

/** The last head of an answer on a connection. Upstreams often send the same one again: it is parsed once. */
export class HeadMemory<Head extends { known: KnownHead | undefined }> {
  readonly #parse: (text: string, method: string) => Head
  #text = ''
  #method = ''
  #head: Head | undefined
  /** The head with the empty line behind it, once it came again. */
  #bytes = none

  /** @param parse reads the text of a head; `method` is that of the request */
  constructor(parse: (text: string, method: string) => Head) {
    this.#parse = parse
  }

  /** The text is kept: it must not be part of a long one. */
  read(text: string, method: string): Head {
    const last = this.#head
    if (last !== undefined && text === this.#text && method === this.#method) {
      last.known ??= new KnownHead()
      if (this.#bytes.length === 0) this.#bytes = Buffer.from(`${text}\r\n`, 'latin1')
      return last
    }
    const head = this.#parse(text, method)
    this.#text = text
    this.#method = method
    this.#head = head
    this.#bytes = none
    return head
  }

  /** A head that has come more than once, if it begins at this place: its bytes need not be decoded. */
  find(bytes: Buffer, at: number, method: string): Head | undefined {
    const { length } = this.#bytes
    if (length === 0 || method !== this.#method || bytes.length - at < length) return undefined
    return bytes.compare(this.#bytes, 0, length, at, at + length) === 0 ? this.#head : undefined
  }

  /** Bytes of the head that `find` has found. */
  get length(): number {
    return this.#bytes.length
  }
}
