/** Numbers of cards and persons, told from other numbers by their form and checksum. */
export interface NumberKind {
  readonly id: string
  /** Sticky; what it matches is of bounded length. */
  readonly form: RegExp
  readonly accepts: (digits: string) => boolean
}

/** Looks for all kinds in one pass: wherever a number begins among so many digits that one of them fits. */
export function createNumberSearch(kinds: readonly NumberKind[]): (text: string) => string | undefined {
  return text => {
    for (let at = nextRun(text, 0); at < text.length; at = nextRun(text, at + 1)) {
      const begins = isDigit(text.charCodeAt(at)) && (at === 0 || !isWord(text.charCodeAt(at - 1)))
      const found = begins ? kindAt(text, at, kinds) : undefined
      if (found !== undefined) return found
    }
    return undefined
  }
}

function kindAt(text: string, at: number, kinds: readonly NumberKind[]): string | undefined {
  for (const { id, form, accepts } of kinds) {
    form.lastIndex = at
    const match = form.exec(text)
    if (match !== null && accepts(match[0].replace(/\D/g, ''))) return id
  }
  return undefined
}

/** Shortest number that is looked for, with its separators. */
const shortest = 11

/**
 * Where from `from` on so many digits and separators follow one another that a number fits. Looks at the last of them
 * first: where that is another character, none of the places before it can be one.
 */
function nextRun(text: string, from: number): number {
  let last = from + shortest - 1
  while (last < text.length) {
    let at = last
    while (at > last - shortest && isNumberPart(text.charCodeAt(at))) at--
    if (at === last - shortest) return at + 1
    last = at + shortest
  }
  return text.length
}

function isDigit(code: number): boolean {
  return code >= 48 && code <= 57
}

/** Digits, spaces and dashes. */
function isNumberPart(code: number): boolean {
  return isDigit(code) || code === 32 || code === 45
}

function isWord(code: number): boolean {
  return isDigit(code) || (code >= 65 && code <= 90) || (code >= 97 && code <= 122) || code === 95
}

/** 13 to 19 digits in a row or in the groups that are printed on cards, with the Luhn checksum (ISO/IEC 7812-1). */
export const cards: readonly NumberKind[] = [
  /(?:\d{13,19}|3\d{3}([ -])\d{6}\1\d{4,5})(?!\w)/y,
  /\d{4}([ -])\d{4}\1\d{4}\1\d{4}(?!\w)/y,
  /\d{4}([ -])\d{4}\1\d{4}\1\d{4}\1\d{1,3}(?!\w)/y,
].map(form => ({ id: 'card-number', form, accepts: isCard }))

function isCard(digits: string): boolean {
  return /^[3-6]|^2[2-7]/.test(digits) && !/^(\d)\1*$/.test(digits) && luhn(digits)
}

function luhn(digits: string): boolean {
  let sum = 0
  for (let index = 0; index < digits.length; index++) {
    const digit = Number(digits[digits.length - 1 - index])
    const doubled = index % 2 === 1 ? digit * 2 : digit
    sum += doubled > 9 ? doubled - 9 : doubled
  }
  return sum % 10 === 0
}

/** United States social security number, with its dashes, in the ranges that are given out. */
export const socialSecurity: NumberKind = {
  id: 'us-ssn',
  form: /(?!000|666|9)\d{3}-(?!00)\d\d-(?!0000)\d{4}(?![\w-])/y,
  accepts: () => true,
}
