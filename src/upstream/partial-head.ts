import { UpstreamError } from './handler.ts'
import { checkBytes, type Framed, isOldLine, noteFields, notFramed, readFields, statusOf } from './http1-head.ts'

const statusLine = 'HTTP/1.1 200 '
const notToken = /[^!#$%&'*+\-.^_`|~0-9A-Za-z]/

/**
 * A head of an answer that comes in pieces. It is refused as soon as no continuation makes it valid: what speaks another
 * protocol may wait for the gateway as the gateway waits for it. Each byte is checked once, however small the pieces are.
 */
export class PartialHead {
  /** All that has come. */
  text = ''
  /** Where the line begins that is not whole. */
  #line = 0
  /** The bytes before this were checked. */
  #checked = 0
  /** Framing by the complete fields; undefined before the end of the status line. */
  #framed: Framed | undefined

  /**
   * @param text what has come before and now
   * @throws UpstreamError `malformed`
   */
  grow(text: string): void {
    this.text = text
    const from = this.#checked
    // A carriage return at the end waits for its line feed.
    this.#checked = text.endsWith('\r') ? text.length - 1 : text.length
    checkBytes(text.slice(from, this.#checked))
    for (let end = text.indexOf('\r\n', this.#line); end >= 0; end = text.indexOf('\r\n', this.#line)) {
      this.#endLine(text.slice(this.#line, end + 2))
      this.#line = end + 2
    }
    if (this.#framed !== undefined) this.#checkName(Math.max(from, this.#line))
    else {
      const line = text.slice(0, this.#checked)
      statusOf(line + statusLine.slice(line.length), Math.max(line.length, statusLine.length))
    }
  }

  #endLine(line: string): void {
    if (this.#framed !== undefined) noteFields(this.#framed, readFields(line, 0))
    else {
      statusOf(line, line.length - 2)
      this.#framed = notFramed(isOldLine(line))
    }
  }

  /** Checks what has come from `from` on as part of a field name, unless that has ended. */
  #checkName(from: number): void {
    const colon = this.text.indexOf(':', this.#line)
    const name = this.text.slice(from, colon < 0 ? this.#checked : Math.max(from, colon))
    if (colon === this.#line || notToken.test(name)) throw new UpstreamError('malformed', 'the name of a field')
  }
}
