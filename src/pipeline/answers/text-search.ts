/** Searches bytes that arrive in pieces for an ASCII pattern, also across the border of two pieces. */
export class TextSearch {
  readonly #pattern: RegExp
  readonly #longest: number
  readonly #mayHold: (piece: Buffer) => boolean
  /** The end of the previous piece. */
  #tail = ''

  /**
   * @param longest characters of the longest text that the pattern matches
   * @param mayHold false for bytes that cannot match, found without decoding them
   */
  constructor(pattern: RegExp, longest: number, mayHold = (_: Buffer) => true) {
    this.#pattern = pattern
    this.#longest = longest
    this.#mayHold = mayHold
  }

  /** Whether the pattern ends in this piece. */
  push(piece: Buffer): boolean {
    const begin = this.#tail + piece.toString('latin1', 0, this.#longest)
    const isShort = piece.length <= this.#longest
    const end = isShort ? begin : piece.toString('latin1', piece.length - this.#longest)
    this.#tail = end.slice(1 - this.#longest)
    return (
      this.#pattern.test(begin) || (!isShort && this.#mayHold(piece) && this.#pattern.test(piece.toString('latin1')))
    )
  }
}

/** A pattern for a JSON string, however its characters are written; some are written as several bytes. */
export function jsonString(text: string, others: Readonly<Record<string, string>> = {}): RegExp {
  const characters = Array.from(text, char => {
    const code = `00${char.charCodeAt(0).toString(16)}`
    const capital = `00${char.toUpperCase().charCodeAt(0).toString(16)}`
    const more = others[char] === undefined ? '' : `|${others[char]}`
    return String.raw`(?:\\?${char}|\\u(?:${code}|${capital})${more})`
  })
  return new RegExp(`"${characters.join('')}"`, 'i')
}
