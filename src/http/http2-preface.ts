/**
 * A client that begins with HTTP/2 cannot read an answer in HTTP/1.1: curl calls that an empty reply. It gets an answer on
 * its first stream, which says to use HTTP/1.1 (RFC 9113 sections 5.4.1 and 7).
 */
const headersFrame = 1
const dataFrame = 0
const settingsFrame = 4
const goAwayFrame = 7
const endStream = 1
const endHeaders = 4
const firstStream = 1
const http11Required = 0xd
/** Index of `:status` in the static table of HPACK (RFC 7541 appendix A). */
const statusIndex = 8

export interface Http2Answer {
  readonly status: number
  /** Lower-case names, flat: name, value. Each is at most 126 bytes long. */
  readonly headers: readonly string[]
  readonly body: string
  /** Debug data of GOAWAY, which clients show. */
  readonly reason: string
}

/** All bytes that the server sends: SETTINGS, the answer, GOAWAY. */
export function http2Answer({ status, headers, body, reason }: Http2Answer): Buffer {
  const fields = [Buffer.of(statusIndex), literal(String(status))]
  for (const [index, text] of headers.entries()) {
    if (index % 2 === 0) fields.push(Buffer.of(0))
    fields.push(literal(text))
  }
  const goAway = Buffer.alloc(8)
  goAway.writeUInt32BE(firstStream)
  goAway.writeUInt32BE(http11Required, 4)
  return Buffer.concat([
    frame(settingsFrame, 0, 0, Buffer.alloc(0)),
    frame(headersFrame, endHeaders, firstStream, Buffer.concat(fields)),
    frame(dataFrame, endStream, firstStream, Buffer.from(body)),
    frame(goAwayFrame, 0, 0, Buffer.concat([goAway, Buffer.from(reason)])),
  ])
}

/** A string of HPACK, not compressed (RFC 7541 section 5.2). */
function literal(text: string): Buffer {
  return Buffer.concat([Buffer.of(text.length), Buffer.from(text, 'latin1')])
}

function frame(type: number, flags: number, stream: number, payload: Buffer): Buffer {
  const head = Buffer.alloc(9)
  head.writeUIntBE(payload.length, 0, 3)
  head[3] = type
  head[4] = flags
  head.writeUInt32BE(stream, 5)
  return Buffer.concat([head, payload])
}
