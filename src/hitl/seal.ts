/**
 * The sealed copy of a held request, and of the upstream's answer to it: AES-256-GCM over a binary frame. The id is part of
 * the authenticated data, so that no copy can replace another.
 */
import { createCipheriv, createDecipheriv, hash } from 'node:crypto'
import type { HeldFacts, HeldRequest, PartDigests, StoredAnswer } from './model.ts'
import { takeRandom } from './random.ts'

/** First byte of a sealed copy; a new layout gets a new number. */
const version = 1
const nonceBytes = 12
const tagBytes = 16

/** The sealed request, and the hash over it. */
export interface SealedFrame {
  readonly bytes: Buffer
  /** SHA-256, hex, over `bytes`. */
  readonly digest: string
}

/**
 * Method, URL, header names and values and body as one run of bytes: the number of texts, each text with its length
 * (32 bits, big-endian, UTF-8), then the body. No two requests have the same frame.
 */
export function frameRequest(request: HeldRequest): SealedFrame {
  return frame([request.method, request.url, ...request.rawHeaders], request.body)
}

/** An empty name, which no field has, divides the fields of the head from the trailers, if there are any. */
export function frameAnswer({ status, rawHeaders, body, trailers }: StoredAnswer): SealedFrame {
  const end = trailers.length === 0 ? [] : ['', ...trailers]
  return frame([String(status), ...rawHeaders, ...end], body)
}

/** Reads the frame of a request, as `openHeld` returns it. */
export function parseRequest(bytes: Buffer): HeldRequest {
  const { texts, body } = parseFrame(bytes)
  const [method = '', url = '', ...rawHeaders] = texts
  return { method, url, rawHeaders, body }
}

export function parseAnswer(bytes: Buffer): StoredAnswer {
  const { texts, body } = parseFrame(bytes)
  const [status, ...fields] = texts
  const end = fields.findIndex((text, index) => text === '' && index % 2 === 0)
  const [rawHeaders, trailers] = end < 0 ? [fields, []] : [fields.slice(0, end), fields.slice(end + 1)]
  return { status: Number(status), rawHeaders, body, trailers }
}

/** Digests of the parts that reviewers compare with those of another request. */
export function partDigests({ url, rawHeaders, body }: HeldRequest): PartDigests {
  const mark = url.indexOf('?')
  return {
    query: digestOf(mark < 0 ? '' : url.slice(mark)),
    fields: digestOf(JSON.stringify(rawHeaders)),
    body: digestOf(body),
  }
}

export function digestOf(bytes: Uint8Array | string): string {
  return hash('sha256', bytes)
}

/** Seals the frame of a request together with its facts: one copy, so that neither can be exchanged. */
export function sealHeld(
  key: Uint8Array,
  id: string,
  held: { readonly request: SealedFrame; readonly facts: HeldFacts },
): Buffer {
  return seal(key, `held:${id}`, framed([JSON.stringify(held.facts)], held.request.bytes))
}

/** Undefined when the copy cannot be opened. */
export function openHeld(
  keys: readonly Uint8Array[],
  id: string,
  sealed: Uint8Array,
): { readonly request: Buffer; readonly facts: HeldFacts } | undefined {
  const plain = unseal(keys, `held:${id}`, sealed)
  if (plain === undefined) return undefined
  const { texts, body } = parseFrame(plain)
  return { request: body, facts: JSON.parse(texts[0]!) }
}

/**
 * @param key 32 bytes
 * @param label what is sealed, for whom: `held:<id>`, `body:<id>` or `response:<id>`
 */
export function seal(key: Uint8Array, label: string, plain: Uint8Array): Buffer {
  const nonce = takeRandom(nonceBytes)
  const cipher = createCipheriv('aes-256-gcm', key, nonce, { authTagLength: tagBytes })
  cipher.setAAD(Buffer.from(label))
  // Of its own memory: a copy for the storage thread takes all the memory that a buffer is part of.
  const sealed = Buffer.allocUnsafeSlow(1 + nonceBytes + plain.byteLength + tagBytes)
  sealed[0] = version
  sealed.set(nonce, 1)
  sealed.set(cipher.update(plain), 1 + nonceBytes)
  // GCM is as long as its plain text: nothing is left for the end.
  cipher.final()
  sealed.set(cipher.getAuthTag(), sealed.length - tagBytes)
  return sealed
}

/** Undefined when the copy was changed, was sealed with another key, or has another label. */
export function unseal(keys: readonly Uint8Array[], label: string, sealed: Uint8Array): Buffer | undefined {
  for (const key of keys) {
    const plain = unsealWith(key, label, sealed)
    if (plain !== undefined) return plain
  }
  return undefined
}

function unsealWith(key: Uint8Array, label: string, sealed: Uint8Array): Buffer | undefined {
  if (sealed[0] !== version || sealed.length < 1 + nonceBytes + tagBytes) return undefined
  const end = sealed.length - tagBytes
  const nonce = sealed.subarray(1, 1 + nonceBytes)
  const decipher = createDecipheriv('aes-256-gcm', key, nonce, { authTagLength: tagBytes })
  decipher.setAAD(Buffer.from(label)).setAuthTag(sealed.subarray(end))
  try {
    return Buffer.concat([decipher.update(sealed.subarray(1 + nonceBytes, end)), decipher.final()])
  } catch {
    return undefined
  }
}

function frame(texts: readonly string[], body: Uint8Array): SealedFrame {
  const bytes = framed(texts, body)
  return { bytes, digest: digestOf(bytes) }
}

function framed(texts: readonly string[], body: Uint8Array): Buffer {
  const ofTexts = texts.reduce((sum, text) => sum + 4 + Buffer.byteLength(text), 4)
  const bytes = Buffer.allocUnsafe(ofTexts + body.byteLength)
  let at = bytes.writeUInt32BE(texts.length)
  for (const text of texts) {
    const length = bytes.write(text, at + 4)
    at = bytes.writeUInt32BE(length, at) + length
  }
  bytes.set(body, at)
  return bytes
}

function parseFrame(bytes: Buffer): { texts: string[]; body: Buffer } {
  const texts: string[] = []
  let at = 4
  for (let left = bytes.readUInt32BE(0); left > 0; left--) {
    const end = at + 4 + bytes.readUInt32BE(at)
    texts.push(bytes.toString('utf8', at + 4, end))
    at = end
  }
  return { texts, body: bytes.subarray(at) }
}
