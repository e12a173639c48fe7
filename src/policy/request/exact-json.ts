import { isNumberPart, numericOf } from '../values/numbers.ts'

/** The quote that ends the string whose first quote is at `start`. */
function endOfString(text: string, start: number): number {
  for (let at = start + 1; ; ) {
    const quote = text.indexOf('"', at)
    let slash = quote
    while (text.charCodeAt(slash - 1) === 92) slash--
    if ((quote - slash) % 2 === 0) return quote
    at = quote + 1
  }
}

/** Assignment would set the prototype. */
export function setMember(object: Record<string, unknown>, name: string, value: unknown): void {
  if (name !== '__proto__') object[name] = value
  else Object.defineProperty(object, name, { value, enumerable: true, configurable: true, writable: true })
}

/** Reads JSON text. It throws SyntaxError when the text is no JSON. */
export type ParseJson = (text: string, escapedNames: boolean) => unknown

/**
 * JSON.parse. In V8 14.6 it may cut names that are written with escapes: once it has read `{"a":1,"\\u0062":1}`, it takes
 * the name in `{"a":1,"\u0062ranch":1}` for the six characters of its escape. It only checks texts with such names.
 */
export function parseJson(text: string, escapedNames: boolean): unknown {
  const value: unknown = JSON.parse(text)
  return escapedNames ? new ExactReader(text, Number).read() : value
}

/**
 * Reads JSON text again that JSON.parse has accepted, each number as it is written: a number that a double cannot hold becomes
 * LongNumber. A reviver would do the same, at twenty times the time.
 */
export class ExactReader {
  readonly #text: string
  readonly #numberOf: (text: string) => unknown
  #at = 0

  constructor(text: string, numberOf: (text: string) => unknown = numericOf) {
    this.#text = text
    this.#numberOf = numberOf
  }

  read(): unknown {
    const code = this.#next()
    if (code === 123) return this.#object()
    if (code === 91) return this.#list()
    if (code === 34) return this.#string()
    if (isNumberPart(code)) return this.#number()
    this.#at += code === 102 ? 5 : 4
    return code === 110 ? null : code === 116
  }

  /** The next character that is no white space. */
  #next(): number {
    let code = this.#text.charCodeAt(this.#at)
    while (code === 32 || (code >= 9 && code <= 13)) code = this.#text.charCodeAt(++this.#at)
    return code
  }

  /** Passes the character that opens a list or object, or a comma; true when it is closed then. */
  #closes(closing: number): boolean {
    if (this.#next() !== closing) return false
    this.#at++
    return true
  }

  #object(): Record<string, unknown> {
    const object: Record<string, unknown> = {}
    this.#at++
    if (this.#closes(125)) return object
    for (;;) {
      this.#next()
      const key = this.#string()
      this.#next()
      this.#at++
      const value = this.read()
      setMember(object, key, value)
      if (this.#closes(125)) return object
      this.#at++
    }
  }

  #list(): unknown[] {
    const list: unknown[] = []
    this.#at++
    if (this.#closes(93)) return list
    for (;;) {
      list.push(this.read())
      if (this.#closes(93)) return list
      this.#at++
    }
  }

  #string(): string {
    const start = this.#at
    const end = endOfString(this.#text, start)
    this.#at = end + 1
    const plain = this.#text.slice(start + 1, end)
    return plain.includes('\\') ? JSON.parse(`"${plain}"`) : plain
  }

  #number(): unknown {
    const start = this.#at
    let code = this.#text.charCodeAt(start)
    while (isNumberPart(code) || (code | 32) === 101) code = this.#text.charCodeAt(++this.#at)
    return this.#numberOf(this.#text.slice(start, this.#at))
  }
}
