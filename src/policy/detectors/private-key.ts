import { asciiBytes, startsWith, type Text, upperDigits } from './bytes.ts'
import type { DetectorFindings, Pass, RankedDetector } from './scan.ts'

const dashes = asciiBytes('-----')
const begin = asciiBytes('-----BEGIN ')
const title = asciiBytes('PRIVATE KEY')
const block = asciiBytes(' BLOCK')

/** Steps of one call of indexOf. */
const callSteps = 16

/** Looks for headers such as `-----BEGIN RSA PRIVATE KEY-----`. */
export class PrivateKeyPass implements Pass {
  readonly best: number
  readonly #privateKey: RankedDetector

  constructor(privateKey: RankedDetector) {
    this.#privateKey = privateKey
    this.best = privateKey.rank
  }

  run({ bytes }: Text, from: number, to: number, found: DetectorFindings): number {
    const piece = bytes.subarray(from, to + begin.length - 1)
    for (let at = piece.indexOf(begin); at >= 0; at = piece.indexOf(begin, at + begin.length)) {
      found.looks += callSteps
      if (!isKey(bytes, from + at + begin.length)) continue
      found.note(this.#privateKey, from + at)
      if (found.rank === this.best) break
    }
    return to
  }
}

/** Up to two words may stand before the title. */
const maxWords = 2

/** Whether the title of a private key stands here, behind the beginning of a header. */
function isKey(bytes: Uint8Array, at: number): boolean {
  let from = at
  for (let words = 0; words <= maxWords && from > 0; words++) {
    if (startsWith(bytes, from, title) && isEnd(bytes, from + title.length)) return true
    from = behindWord(bytes, from)
  }
  return false
}

function isEnd(bytes: Uint8Array, at: number): boolean {
  return startsWith(bytes, at, dashes) || (startsWith(bytes, at, block) && startsWith(bytes, at + block.length, dashes))
}

/** The place behind a word of 2 to 12 capitals and digits and the space behind it, or 0. */
function behindWord(bytes: Uint8Array, from: number): number {
  let at = from
  while (at - from <= 12 && upperDigits[bytes[at]!] === 1) at++
  const length = at - from
  return length >= 2 && length <= 12 && bytes[at] === 32 ? at + 1 : 0
}
