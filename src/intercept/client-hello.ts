/** The name in the first message of a TLS client (RFC 8446 section 4.1.2, RFC 6066 section 3). */

import { GrowingBuffer } from '../base/growing-buffer.ts'

/** What a message says. `name` is undefined in one without a name. */
export type ClientHello = 'malformed' | { readonly name: string | undefined }

const handshakeRecord = 0x16
const clientHello = 1
const serverName = 0
const hostName = 0
/** Of a record: type, version, length (RFC 8446 section 5.1). */
const recordHead = 5
/** Of a message: type and length. */
const messageHead = 4
const longestRecord = 16_384

/**
 * Reads a ClientHello from the first bytes of a connection, in one pass: it may be divided into records, and they into any
 * pieces.
 */
export class ClientHelloReader {
  readonly #all = new GrowingBuffer()
  readonly #message = new GrowingBuffer()
  /** What was read of `#all`. */
  #at = 0
  /** What the current record still has to bring. */
  #left = 0

  /** All that was added. */
  get bytes(): Buffer {
    return this.#all.bytes
  }

  /** Undefined: more is needed. */
  add(piece: Buffer): ClientHello | undefined {
    this.#all.add(piece)
    const { bytes } = this.#all
    while (this.#at < bytes.length) {
      if (this.#left === 0) {
        const length = recordLength(bytes.subarray(this.#at))
        if (typeof length !== 'number') return length
        this.#left = length
        this.#at += recordHead
      }
      const end = Math.min(this.#at + this.#left, bytes.length)
      this.#message.add(bytes.subarray(this.#at, end))
      this.#left -= end - this.#at
      this.#at = end
    }
    return readMessage(this.#message.bytes)
  }
}

/** Length of the record that begins here. Undefined: more is needed. */
function recordLength(bytes: Buffer): number | 'malformed' | undefined {
  if (bytes[0] !== handshakeRecord || (bytes[1] ?? 3) !== 3) return 'malformed'
  if (bytes.length < recordHead) return undefined
  const length = bytes.readUInt16BE(3)
  return length === 0 || length > longestRecord ? 'malformed' : length
}

function readMessage(message: Buffer): ClientHello | undefined {
  if (message.length < messageHead) return undefined
  if (message[0] !== clientHello) return 'malformed'
  const length = message.readUIntBE(1, 3)
  if (message.length < messageHead + length) return undefined
  try {
    return nameIn(new Cursor(message.subarray(messageHead, messageHead + length)))
  } catch (error) {
    if (error instanceof RangeError) return 'malformed'
    throw error
  }
}

/** Reads fields one after the other. Past the end it throws a RangeError. */
class Cursor {
  readonly #bytes: Buffer
  #at = 0

  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  get isAtEnd(): boolean {
    return this.#at === this.#bytes.length
  }

  number(size: 1 | 2): number {
    const value = this.#bytes.readUIntBE(this.#at, size)
    this.#at += size
    return value
  }

  take(length: number): Buffer {
    const end = this.#at + length
    if (end > this.#bytes.length) throw new RangeError('past the end')
    const taken = this.#bytes.subarray(this.#at, end)
    this.#at = end
    return taken
  }

  get length(): number {
    return this.#bytes.length
  }

  /** A field with its length in front. */
  vector(size: 1 | 2): Cursor {
    return new Cursor(this.take(this.number(size)))
  }
}

/** Version and random. */
const fixedPart = 34

function nameIn(hello: Cursor): ClientHello {
  hello.take(fixedPart)
  hello.vector(1)
  hello.vector(2)
  hello.vector(1)
  if (hello.isAtEnd) return { name: undefined }
  const extensions = hello.vector(2)
  if (!hello.isAtEnd) return 'malformed'
  let found: string | undefined
  while (!extensions.isAtEnd) {
    const type = extensions.number(2)
    const content = extensions.vector(2)
    if (type !== serverName) continue
    const name = hostNameIn(content)
    // Servers differ in which of two counts.
    if (name === undefined || found !== undefined) return 'malformed'
    found = name
  }
  return { name: found }
}

/** Undefined unless there is one name, of a host. */
function hostNameIn(content: Cursor): string | undefined {
  const list = content.vector(2)
  const type = list.number(1)
  const name = list.vector(2)
  return type === hostName && list.isAtEnd && content.isAtEnd ? name.take(name.length).toString('latin1') : undefined
}
