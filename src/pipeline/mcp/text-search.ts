/** Searches bytes that come in pieces for a pattern of ASCII, which may stand across two pieces. */
export class TextSearch {
  readonly #pattern: RegExp
  readonly #longest: number
  /** The end of what came before. */
  #tail = ''

  /** @param longest characters of the longest text that the pattern matches */
  constructor(pattern: RegExp, longest: number) {
    this.#pattern = pattern
    this.#longest = longest
  }

  /** Whether the pattern ends in this piece. */
  push(piece: Buffer): boolean {
    const text = this.#tail + piece.toString('latin1')
    this.#tail = text.slice(1 - this.#longest)
    return this.#pattern.test(text)
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
