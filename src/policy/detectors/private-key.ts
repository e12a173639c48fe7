import { asciiBytes, charset, Runs, startsWith, type Text, upperDigits } from './bytes.ts'
import type { Findings, Pass, Ranked } from './scan.ts'

const dashes = asciiBytes('-----')
const begin = asciiBytes('BEGIN ')
const title = asciiBytes('PRIVATE KEY')
const block = asciiBytes(' BLOCK')

/** The whole line is made of these. */
const part = charset('A-Z0-9 -')
const runs = new Runs(part, begin.length + title.length + dashes.length)

/** Looks for headers such as `-----BEGIN RSA PRIVATE KEY-----`, at each B after a dash. */
export class PrivateKeyPass implements Pass {
  readonly best: number
  readonly #privateKey: Ranked

  constructor(privateKey: Ranked) {
    this.#privateKey = privateKey
    this.best = privateKey.rank
  }

  run({ bytes }: Text, from: number, to: number, found: Findings): number {
    let at = runs.next(bytes, from, to)
    while (at < to) {
      if (bytes[at] === 66 && bytes[at - 1] === 45) {
        found.looks += 4
        if (isKey(bytes, at)) {
          found.note(this.#privateKey)
          return at
        }
      }
      at = part[bytes[at]!] === 1 ? at + 1 : runs.next(bytes, at + 1, to)
    }
    return at
  }
}

/** Up to two words may stand before the title. */
const mostWords = 2

function isKey(bytes: Uint8Array, at: number): boolean {
  if (!startsWith(bytes, at - dashes.length, dashes) || !startsWith(bytes, at, begin)) return false
  let from = at + begin.length
  for (let words = 0; words <= mostWords && from > 0; words++) {
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
