/** The bytes of a body, and their text without any loss: what is not UTF-8 stays known, and countable. */
import { turn } from './turns.ts'

/** New browsers have it, and it is some ten times as fast. */
const native = (Uint8Array as { readonly fromBase64?: (base64: string) => Uint8Array<ArrayBuffer> }).fromBase64

export function bytesOf(base64: string): Uint8Array<ArrayBuffer> {
  if (native !== undefined) return native.call(Uint8Array, base64)
  const binary = atob(base64)
  const bytes = new Uint8Array(binary.length)
  for (let at = 0; at < bytes.length; at++) bytes[at] = binary.charCodeAt(at)
  return bytes
}

/** Characters that are decoded in one turn, some 5 ms. Four of them are three bytes. */
const perTurn = 1_048_576

/** The same of a long text: the page answers the person meanwhile. */
export async function bytesInTurns(base64: string): Promise<Uint8Array<ArrayBuffer>> {
  const pieces: Uint8Array[] = []
  let length = 0
  for (let at = 0; at < base64.length; at += perTurn) {
    const piece = bytesOf(base64.slice(at, at + perTurn))
    pieces.push(piece)
    length += piece.length
    await turn()
  }
  const bytes = new Uint8Array(length)
  let at = 0
  for (const piece of pieces) {
    bytes.set(piece, at)
    at += piece.length
  }
  return bytes
}

export interface BytesText {
  /** A byte that is no UTF-8 is the lone surrogate U+DC00 plus its value, which UTF-8 cannot have. */
  readonly text: string
  /** Bytes that are no UTF-8. */
  readonly invalid: number
}

export function textOf(bytes: Uint8Array): BytesText {
  try {
    return { text: new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes), invalid: 0 }
  } catch {
    return textWithOthers(bytes)
  }
}

function textWithOthers(bytes: Uint8Array): BytesText {
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
  const pieces: string[] = []
  let invalid = 0
  let from = 0
  for (let at = 0; at < bytes.length; ) {
    const width = widthAt(bytes, at)
    if (width === 0) {
      if (from < at) pieces.push(decoder.decode(bytes.subarray(from, at)))
      pieces.push(String.fromCharCode(0xdc00 + (bytes[at] ?? 0)))
      invalid++
      from = at + 1
    }
    at += width || 1
  }
  pieces.push(decoder.decode(bytes.subarray(from)))
  return { text: pieces.join(''), invalid }
}

/** Bytes of the character that begins at `at` (RFC 3629); 0 when none does. */
function widthAt(bytes: Uint8Array, at: number): number {
  const first = bytes[at] ?? 0
  if (first < 0x80) return 1
  if (first < 0xc2 || first > 0xf4) return 0
  const width = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4
  const lowest = first === 0xe0 ? 0xa0 : first === 0xf0 ? 0x90 : 0x80
  const highest = first === 0xed ? 0x9f : first === 0xf4 ? 0x8f : 0xbf
  const second = bytes[at + 1] ?? 0
  if (second < lowest || second > highest) return 0
  for (let next = at + 2; next < at + width; next++) if ((bytes[next] ?? 0) >> 6 !== 2) return 0
  return width
}

/**
 * Where bytes are in the text of `textOf`.
 *
 * @param at offsets of bytes, in order
 * @returns for each the offset of the first character that begins at it or behind it
 */
export function charactersAt(bytes: Uint8Array, at: readonly number[]): readonly number[] {
  let byte = 0
  let unit = 0
  return at.map(wanted => {
    while (byte < wanted && byte < bytes.length) {
      const width = widthAt(bytes, byte)
      byte += width || 1
      unit += width === 4 ? 2 : 1
    }
    return unit
  })
}
