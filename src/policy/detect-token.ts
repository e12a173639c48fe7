/** Tokens: a literal that says what it is, then random characters. */

/** Characters that may stand in a token. */
export const upperDigits = charset('A-Z0-9')
export const word = charset('A-Za-z0-9_')
export const urlSafe = charset('A-Za-z0-9_-')
export const base64 = charset('A-Za-z0-9+/=_-')
export const hex = charset('a-f0-9')
export const dotted = charset('A-Za-z0-9_.-')

function charset(ranges: string): Uint8Array {
  const test = new RegExp(`[${ranges}]`)
  return Uint8Array.from({ length: 128 }, (_, code) => (test.test(String.fromCharCode(code)) ? 1 : 0))
}

export interface Token {
  readonly id: string
  readonly literals: readonly string[]
  readonly set: Uint8Array
  /** Characters of the set after the literal. */
  readonly least: number
}

/** Looks for all tokens in one pass: for any of the literals at the beginning of a word, and what follows there. */
export function createTokenSearch(tokens: readonly Token[]): (text: string) => string | undefined {
  const starts = tokens.flatMap(({ literals, ...rest }) => literals.map(literal => ({ literal, ...rest })))
  const literals = starts.map(({ literal }) => literal.replaceAll('.', '\\.'))
  const search = new RegExp(`\\b(?:${literals.join('|')})`, 'g')
  return text => {
    search.lastIndex = 0
    for (let match = search.exec(text); match !== null; match = search.exec(text)) {
      const found = tokenAt(text, match.index, starts)
      if (found !== undefined) return found
      search.lastIndex = match.index + 1
    }
    return undefined
  }
}

interface Start extends Omit<Token, 'literals'> {
  readonly literal: string
}

function tokenAt(text: string, at: number, starts: readonly Start[]): string | undefined {
  for (const { id, literal, set, least } of starts) {
    if (text.startsWith(literal, at) && runLength(text, at + literal.length, set, least) >= least) return id
  }
  return undefined
}

/** Characters of the set from `start` on, counted up to `enough`. */
export function runLength(text: string, start: number, set: Uint8Array, enough: number): number {
  let length = 0
  while (length < enough && set[text.charCodeAt(start + length)] === 1) length++
  return length
}
