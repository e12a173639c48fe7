import { Gathered } from '../../base/gathered.ts'

const lineFeed = 0x0a
const carriageReturn = 0x0d

/**
 * Cuts an event stream into its events (WHATWG HTML, section 9.2): each with the empty line that ends it. Bytes are
 * neither added nor lost.
 */
export class EventSplitter {
  /** Of the event that has not ended. */
  readonly #begun = new Gathered()
  #lineLength = 0
  #isBehindReturn = false

  /** Bytes of the event that has not ended. */
  get size(): number {
    return this.#begun.size
  }

  /** The events that end in these bytes, which are copied. */
  push(chunk: Buffer): Buffer[] {
    const events: Buffer[] = []
    let from = 0
    for (let at = 0; at < chunk.length; at++) {
      const byte = chunk[at]
      const endsLine = byte === carriageReturn || (byte === lineFeed && !this.#isBehindReturn)
      // The line feed behind a return belongs to the same line end.
      if (!endsLine && byte !== lineFeed) this.#lineLength++
      this.#isBehindReturn = byte === carriageReturn
      if (!endsLine) continue
      if (this.#lineLength === 0) {
        // The line feed of the same line end belongs to the event if it has arrived.
        if (byte === carriageReturn && chunk[at + 1] === lineFeed) at++
        events.push(this.#take(chunk.subarray(from, at + 1)))
        this.#isBehindReturn = chunk[at] === carriageReturn
        from = at + 1
      }
      this.#lineLength = 0
    }
    if (from < chunk.length) this.#begun.add(chunk.subarray(from))
    return events
  }

  /** The bytes of the event that has not ended. */
  rest(): Buffer {
    return this.#begun.take()
  }

  #take(last: Buffer): Buffer {
    if (this.#begun.size === 0) return Buffer.from(last)
    this.#begun.add(last)
    return this.#begun.take()
  }
}

const byteOrderMark = '\ufeff'

/** The data of an event; undefined when it has none. */
export function dataOf(event: string): string | undefined {
  const lines = linesOf(event).filter(line => /^data(?::|$)/.test(line))
  return lines.length === 0 ? undefined : lines.map(line => line.replace(/^data(?:: ?|$)/, '')).join('\n')
}

/** The event with other data, of one line. */
export function withData(event: string, data: string): string {
  const others = linesOf(event).filter(line => line !== '' && !/^data(?::|$)/.test(line))
  return `${[...others, `data: ${data}`].join('\n')}\n\n`
}

/** Readers drop the mark at the start of a stream. */
const linesOf = (event: string): string[] => event.replace(byteOrderMark, '').split(/\r\n|\r|\n/)
