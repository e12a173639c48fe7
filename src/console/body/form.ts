/** Names and values of a query or a form, in their order. */
import { textOf } from './bytes.ts'
import type { Range } from './findings.ts'

export interface Pair {
  readonly name: Range
  /** Undefined: without an equals sign. */
  readonly value: Range | undefined
}

/** Every pair, empty ones too. */
export function pairsOf(text: string): readonly Pair[] {
  const pairs: Pair[] = []
  let equals = -1
  for (let from = 0; from <= text.length; ) {
    const to = placeOf('&', text, from)
    // It is looked for once, however many pairs have none.
    if (equals < from) equals = placeOf('=', text, from)
    const hasValue = equals < to
    pairs.push({ name: { from, to: hasValue ? equals : to }, value: hasValue ? { from: equals + 1, to } : undefined })
    from = to + 1
  }
  return pairs
}

function placeOf(char: string, text: string, from: number): number {
  const at = text.indexOf(char, from)
  return at < 0 ? text.length : at
}

/** Escapes of forms. Bytes that are not UTF-8 are kept, as in `textOf`. */
export const formCoding = { widthAt: (text: string, at: number) => (hexAt(text, at) === undefined ? 1 : 3), decode }

function decode(text: string): string {
  if (!/[%+]/.test(text)) return text
  const bytes = new TextEncoder().encode(text)
  let length = 0
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at] ?? 0
    const escaped = byte === 0x25 ? hexOf(bytes, at) : undefined
    bytes[length++] = escaped ?? (byte === 0x2b ? 0x20 : byte)
    if (escaped !== undefined) at += 2
  }
  return textOf(bytes.subarray(0, length)).text
}

const hexOf = (bytes: Uint8Array, at: number) => hexAt(String.fromCharCode(...bytes.subarray(at, at + 3)), 0)

/** The byte that `%XX` stands for. */
function hexAt(text: string, at: number): number | undefined {
  const code = text.slice(at, at + 3)
  return /^%[0-9a-f]{2}$/i.test(code) ? Number.parseInt(code.slice(1), 16) : undefined
}
