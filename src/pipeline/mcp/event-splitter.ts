import { GrowingBuffer } from '../../base/growing-buffer.ts'

const lineFeed = 0x0a
const carriageReturn = 0x0d

/** Bytes of an event stream: one event, or several that are short. */
export interface EventPiece {
  readonly bytes: Buffer
  readonly isShort: boolean
}

/**
 * Cuts an event stream into its events (WHATWG HTML, section 9.2): each with the empty line that ends it. Short events
 * in a row stay together, since cutting a chunk into 65,000 of them takes 50 ms. Bytes are neither added nor lost.
 */
export class EventSplitter {
  readonly #shortest: number
  /** Of the event that has not ended. */
  readonly #begun = new GrowingBuffer()
  #lineLength = 0
  #isBehindReturn = false

  /** @param shortest shorter events are short, bytes */
  constructor(shortest: number) {
    this.#shortest = shortest
  }

  /** Bytes of the event that has not ended. */
  get size(): number {
    return this.#begun.size
  }

  /** The events that end in these bytes, which are copied. */
  push(chunk: Buffer): EventPiece[] {
    const pieces: EventPiece[] = []
    /** Where the event begins, and the short ones before it. */
    let from = 0
    let shortFrom = 0
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
        this.#isBehindReturn = chunk[at] === carriageReturn
        const end = at + 1
        if (this.#begun.size > 0 || !this.#isShort(end - from)) {
          this.#addShort(pieces, chunk.subarray(shortFrom, from))
          pieces.push(this.#take(chunk.subarray(from, end)))
          shortFrom = end
        }
        from = end
      }
      this.#lineLength = 0
    }
    this.#addShort(pieces, chunk.subarray(shortFrom, from))
    if (from < chunk.length) this.#begun.add(chunk.subarray(from))
    return pieces
  }

  /** The bytes of the event that has not ended. */
  rest(): EventPiece {
    return this.#take(Buffer.alloc(0))
  }

  #isShort(length: number): boolean {
    return length < this.#shortest
  }

  #addShort(pieces: EventPiece[], events: Buffer): void {
    if (events.length > 0) pieces.push({ bytes: Buffer.from(events), isShort: true })
  }

  #take(last: Buffer): EventPiece {
    if (this.#begun.size > 0) this.#begun.add(last)
    const bytes = this.#begun.size > 0 ? this.#begun.take() : Buffer.from(last)
    return { bytes, isShort: this.#isShort(bytes.length) }
  }
}

/** Splitting the lines of one event is one piece of work. */
const maxLines = 10_000

const standard = /\r\n|\r|\n/
// biome-ignore lint/suspicious/noControlCharactersInRegex: they end lines in Python.
const splitlines = /\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]/
/** Each run is read once: an upstream may send 10,000. */
const endOfLine = /(?<!\r)\r+$/

/** An event as every reader understands it. */
export interface Event {
  /** As WHATWG HTML divides them. */
  readonly lines: readonly string[]
  readonly data: string
}

/**
 * Reads an event; undefined when it has no data, too many lines, or data that readers divide in different ways: in Go lines
 * end at line feeds alone, in Python also at U+2028 and others, and some readers keep a byte order mark.
 */
export function readEvent(event: string): Event | undefined {
  const text = event.replace(/^\ufeff/, '')
  const lines = text.split(standard, maxLines + 1)
  const ofPython = event.split(splitlines, maxLines + 1)
  if (lines.length > maxLines || ofPython.length > maxLines) return undefined
  const ofGo = event.split('\n').map(line => line.replace(endOfLine, ''))
  const data = dataOf(lines)
  const others = [dataOf(event.split(standard)), dataOf(ofGo), dataOf(ofPython)]
  if (data === undefined || others.some(other => other !== undefined && other !== data)) return undefined
  return { lines, data }
}

/** The data of an event; undefined when it has none. */
function dataOf(lines: readonly string[]): string | undefined {
  const found = lines.filter(line => /^data(?::|$)/.test(line))
  return found.length === 0 ? undefined : found.map(line => line.replace(/^data(?:: ?|$)/, '')).join('\n')
}

/** The event with other data, of one line. */
export function withData({ lines }: Event, data: string): string {
  const others = lines.filter(line => line !== '' && !/^data(?::|$)/.test(line))
  return `${[...others, `data: ${data}`].join('\n')}\n\n`
}
