import { charge, onceForText, resume } from '../../turns/evaluation.ts'
import { type Budget, stepsOfText, type Work } from '../../values/work.ts'
import { fold } from './values.ts'

/** Texts of values up to this length are folded at once, and again for each condition. */
const pieceLength = 4_096
/** Text beyond ASCII takes this many steps for each character. */
const stepsPerWideCharacter = 8

/** `fold` for a long text, in pieces: what becomes of a character does not depend on its neighbours. */
class Folding implements Work {
  folded = ''
  readonly #text: string
  #at = 0

  constructor(text: string) {
    this.#text = text
  }

  advance(budget: Budget): boolean {
    const text = this.#text
    while (this.#at < text.length) {
      if (budget.left <= 0) return false
      const piece = text.slice(this.#at, endOfPiece(text, this.#at))
      this.folded += fold(piece)
      this.#at += piece.length
      budget.left -= isAscii(piece) ? stepsOfText(piece.length) : piece.length * stepsPerWideCharacter
    }
    return true
  }
}

/** A pair of surrogates is one character. */
function endOfPiece(text: string, from: number): number {
  const end = from + pieceLength
  const code = text.charCodeAt(end - 1)
  return code >= 0xd800 && code <= 0xdbff ? end + 1 : end
}

function isAscii(text: string): boolean {
  return Buffer.byteLength(text) === text.length
}

/** `fold` for a value of a request. */
export function foldValue(text: string): string {
  if (text.length > pieceLength) return onceForText(foldValue, text, foldLong)
  charge(text.length)
  return fold(text)
}

function foldLong(text: string): string {
  return resume(foldValue, text, () => new Folding(text)).folded
}
