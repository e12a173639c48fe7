const maxDepth = 200
const defaultMaxValues = 100_000

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/**
 * Parses a JSON text (RFC 8259) that has one meaning for every reader: UTF-8 without a byte order mark, no name twice in
 * one object, none that is `__proto__`, at most 200 levels and `maxValues` values, lists and objects included.
 *
 * @returns the value, or the rest of a sentence on what is wrong
 */
export function parseStrictJson(
  bytes: Uint8Array,
  maxValues = defaultMaxValues,
): { readonly value: unknown } | { readonly problem: string } {
  let text: string
  try {
    text = utf8.decode(bytes)
  } catch {
    return { problem: 'is not UTF-8' }
  }
  try {
    return { value: new JsonReader(text, { maxValues, strictNames: true }).read() }
  } catch (error) {
    if (error instanceof SyntaxError) return { problem: error.message }
    throw error
  }
}

/** The value of a JSON text of at most 200 levels; undefined when it is not JSON. The last of equal names counts. */
export function parseJson(text: string): unknown {
  try {
    return new JsonReader(text).read()
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  }
}

/** Canonical JSON (RFC 8785) of a value read from JSON: two equal values give the same text. */
export function canonicalJson(value: unknown): string {
  return [...canonicalPieces(value)].join('')
}

/** The same in pieces, so that long work can be divided: each is a bracket, a name, or a value that is no list or object. */
export function* canonicalPieces(value: unknown): Generator<string, void> {
  // Pieces to write, the next one last. Texts are written unchanged.
  const rest: (string | { readonly value: unknown })[] = [{ value }]
  for (let next = rest.pop(); next !== undefined; next = rest.pop()) {
    if (typeof next === 'string') yield next
    else if (typeof next.value !== 'object' || next.value === null) yield JSON.stringify(next.value)
    else {
      const isList = Array.isArray(next.value)
      const members = Object.entries(next.value)
      if (!isList) members.sort(([a], [b]) => (a < b ? -1 : 1))
      rest.push(isList ? ']' : '}')
      for (const [at, [name, member]] of [...members.entries()].reverse()) {
        const comma = at === 0 ? '' : ','
        rest.push({ value: member }, isList ? comma : `${comma}${JSON.stringify(name)}:`)
      }
      yield isList ? '[' : '{'
    }
  }
}

/** Sets a member of any name: assignment to `__proto__` would set the prototype. */
export function setMember(object: Record<string, unknown>, name: string, value: unknown): void {
  if (name !== '__proto__') object[name] = value
  else Object.defineProperty(object, name, { value, enumerable: true, configurable: true, writable: true })
}

export interface JsonRules {
  /** The value of a number, from its text. */
  readonly numberOf?: (text: string) => unknown
  readonly maxValues?: number
  /** Whether equal names in one object are rejected, and `__proto__`: readers understand these differently. */
  readonly strictNames?: boolean
}

const numberGrammar = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y
// biome-ignore lint/suspicious/noControlCharactersInRegex: JSON strings contain none of these unescaped.
const notPlain = /[\0-\x1f\\]/

/**
 * Reads one JSON text, as JSON.parse should. JSON.parse in V8 14.6 may mistake names that are written with escapes: after
 * `{"a":1,"\\u0062":1}` it reads the name in `{"a":1,"\u0062ranch":1}` as the six characters of its escape.
 */
export class JsonReader {
  readonly #text: string
  readonly #numberOf: (text: string) => unknown
  readonly #strictNames: boolean
  readonly #maxValues: number
  #values = 0
  #depth = 0
  #at = 0

  constructor(text: string, rules: JsonRules = {}) {
    this.#text = text
    this.#numberOf = rules.numberOf ?? Number
    this.#maxValues = rules.maxValues ?? Number.POSITIVE_INFINITY
    this.#strictNames = rules.strictNames ?? false
  }

  /** Throws SyntaxError, whose message is the rest of a sentence, when the text is not JSON or breaks a rule. */
  read(): unknown {
    const value = this.#value()
    if (!Number.isNaN(this.#next())) throw this.#unexpected()
    return value
  }

  #value(): unknown {
    if (++this.#values > this.#maxValues) throw new SyntaxError(`has more than ${this.#maxValues} values`)
    const code = this.#next()
    if (code === quote) return this.#string()
    if (code === openObject) return this.#object()
    if (code === openList) return this.#list()
    if (code === letterT) return this.#word('true', true)
    if (code === letterF) return this.#word('false', false)
    if (code === letterN) return this.#word('null', null)
    return this.#number()
  }

  /** The next character that is not white space; NaN at the end. */
  #next(): number {
    let code = this.#text.charCodeAt(this.#at)
    while (code === 32 || code === 10 || code === 13 || code === 9) code = this.#text.charCodeAt(++this.#at)
    return code
  }

  #object(): Record<string, unknown> {
    const object: Record<string, unknown> = {}
    if (this.#opens(closeObject)) return object
    do {
      if (this.#next() !== quote) throw this.#unexpected()
      const name = this.#string()
      if (this.#strictNames) assertStrict(object, name)
      if (this.#next() !== colon) throw this.#unexpected()
      this.#at++
      setMember(object, name, this.#value())
    } while (this.#goesOn(closeObject))
    return object
  }

  #list(): unknown[] {
    const list: unknown[] = []
    if (this.#opens(closeList)) return list
    do list.push(this.#value())
    while (this.#goesOn(closeList))
    return list
  }

  /** Passes the bracket that opens a list or object, and the one that closes it when it is empty: true then. */
  #opens(closing: number): boolean {
    if (++this.#depth > maxDepth) throw new SyntaxError(`is nested deeper than ${maxDepth} levels`)
    this.#at++
    return this.#next() === closing && this.#closes()
  }

  /** Passes the comma or bracket behind an element or member. False when it closes the list or object. */
  #goesOn(closing: number): boolean {
    const code = this.#next()
    if (code === closing) return !this.#closes()
    if (code !== comma) throw this.#unexpected()
    this.#at++
    return true
  }

  #closes(): true {
    this.#depth--
    this.#at++
    return true
  }

  #string(): string {
    const start = this.#at
    const end = closingQuote(this.#text, start)
    if (end < 0) throw this.#unexpected()
    const written = this.#text.slice(start + 1, end)
    this.#at = end + 1
    if (!notPlain.test(written)) return written
    try {
      return JSON.parse(`"${written}"`)
    } catch {
      this.#at = start
      throw this.#unexpected()
    }
  }

  #number(): unknown {
    numberGrammar.lastIndex = this.#at
    const written = numberGrammar.exec(this.#text)?.[0]
    if (written === undefined) throw this.#unexpected()
    this.#at += written.length
    return this.#numberOf(written)
  }

  #word<T>(word: string, value: T): T {
    if (!this.#text.startsWith(word, this.#at)) throw this.#unexpected()
    this.#at += word.length
    return value
  }

  #unexpected(): SyntaxError {
    const before = this.#text.slice(0, this.#at)
    const line = before.split('\n').length
    return new SyntaxError(`is not JSON at line ${line}, column ${before.length - before.lastIndexOf('\n')}`)
  }
}

function assertStrict(object: object, name: string): void {
  if (name === '__proto__') throw new SyntaxError('has the name "__proto__"')
  if (Object.hasOwn(object, name)) throw new SyntaxError(`has the name ${JSON.stringify(name)} twice in one object`)
}

/** Index of the quote that closes the string opened at `start`; -1 without any. */
function closingQuote(text: string, start: number): number {
  for (let at = start + 1; ; ) {
    const end = text.indexOf('"', at)
    let slash = end
    while (text.charCodeAt(slash - 1) === backslash) slash--
    if ((end - slash) % 2 === 0) return end
    at = end + 1
  }
}

const quote = 34
const comma = 44
const colon = 58
const openList = 91
const backslash = 92
const closeList = 93
const letterF = 102
const letterN = 110
const letterT = 116
const openObject = 123
const closeObject = 125
