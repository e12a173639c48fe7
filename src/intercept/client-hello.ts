/** The name in the first message of a TLS client (RFC 8446 section 4.1.2, RFC 6066 section 3). */

/** What the bytes so far are. `name` is undefined in a message without one. */
export type ClientHello = 'incomplete' | 'malformed' | { readonly name: string | undefined }

const handshakeRecord = 0x16
const clientHello = 1
const serverName = 0
const hostName = 0
/** Of a record: type, version, length (RFC 8446 section 5.1). */
const recordHead = 5
/** Of a message: type and length. */
const messageHead = 4
const longestRecord = 16_384

/** Reads a ClientHello, which may be divided into records, from the first bytes of a connection. */
export function readClientHello(bytes: Buffer): ClientHello {
  const message = messageIn(bytes)
  if (typeof message === 'string') return message
  if (message.length < messageHead) return 'incomplete'
  if (message[0] !== clientHello) return 'malformed'
  const length = message.readUIntBE(1, 3)
  if (message.length < messageHead + length) return 'incomplete'
  try {
    return nameIn(new Cursor(message.subarray(messageHead, messageHead + length)))
  } catch (error) {
    if (error instanceof RangeError) return 'malformed'
    throw error
  }
}

/** The contents of all whole records, and of the last one as far as it has come. */
function messageIn(bytes: Buffer): Buffer | 'incomplete' | 'malformed' {
  const parts: Buffer[] = []
  for (let at = 0; at < bytes.length; ) {
    if (bytes[at] !== handshakeRecord || (bytes[at + 1] ?? 3) !== 3) return 'malformed'
    if (bytes.length < at + recordHead) break
    const length = bytes.readUInt16BE(at + 3)
    if (length === 0 || length > longestRecord) return 'malformed'
    parts.push(bytes.subarray(at + recordHead, at + recordHead + length))
    at += recordHead + length
  }
  return parts.length === 0 ? 'incomplete' : Buffer.concat(parts)
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
