import { requestIdField } from './names.ts'
import type { WithHead } from './take-back.ts'

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
