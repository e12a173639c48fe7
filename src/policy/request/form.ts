import { type Budget, stepsOfText, type Work } from '../values/work.ts'

/** Names and values of a form or a query; a repeated name gives a list. Own properties of an object without prototype. */
export type Pairs = Record<string, string | string[]>

/** The pairs of a query, read as browsers read them: what cannot be decoded becomes U+FFFD. */
export function readQuery(text: string): Pairs {
  const pairs: Pairs = Object.create(null)
  for (let start = 0; start < text.length; ) {
    const end = endOfPair(text, start)
    const pair = end > start ? readPair(text.slice(start, end), decodeOrRepair) : undefined
    if (pair !== undefined) addPair(pairs, pair)
    start = end + 1
  }
  return pairs
}

/** Steps that reading a pair takes at most. */
const stepsPerPair = 48
/** Most different names of one form. */
const maxNames = 10_000

/** Reads the pairs of a form. */
export class FormReading implements Work {
  /** The pairs that were read; a string is why they cannot be: there are too many, or they can be read in two ways. */
  result: Pairs | string = Object.create(null)
  readonly #text: string
  readonly #mostPairs: number
  #at = 0
  #pairs = 0
  #names = 0

  constructor(text: string, mostPairs: number) {
    this.#text = text
    this.#mostPairs = mostPairs
  }

  advance(budget: Budget): boolean {
    while (this.#at < this.#text.length && typeof this.result !== 'string') {
      if (budget.left <= 0) return false
      const from = this.#at
      this.#step(this.result)
      budget.left -= stepsPerPair + stepsOfText(this.#at - from)
    }
    return true
  }

  #step(pairs: Pairs): void {
    const start = this.#at
    const end = endOfPair(this.#text, start)
    this.#at = end + 1
    if (++this.#pairs > this.#mostPairs) this.result = `of more than ${this.#mostPairs} values`
    if (end === start || typeof this.result === 'string') return
    const pair = readPair(this.#text.slice(start, end), decodePart)
    if (pair === undefined) this.result = 'not a valid form'
    else if (addPair(pairs, pair) && ++this.#names > maxNames) this.result = `of more than ${maxNames} names`
  }
}

function endOfPair(text: string, start: number): number {
  const found = text.indexOf('&', start)
  return found < 0 ? text.length : found
}

/** Name and value; undefined when one of them cannot be decoded. */
function readPair(pair: string, decode: (part: string) => string | undefined): readonly [string, string] | undefined {
  const equals = pair.indexOf('=')
  const name = decode(equals < 0 ? pair : pair.slice(0, equals))
  const value = equals < 0 ? '' : decode(pair.slice(equals + 1))
  return name === undefined || value === undefined ? undefined : [name, value]
}

/** True when the name is new. */
function addPair(pairs: Pairs, [name, value]: readonly [string, string]): boolean {
  const known = pairs[name]
  if (known === undefined) pairs[name] = value
  else if (Array.isArray(known)) known.push(value)
  else pairs[name] = [known, value]
  return known === undefined
}

/** Plus signs are spaces, and what is percent-encoded is UTF-8; undefined when it is not. */
function decodePart(part: string): string | undefined {
  const spaced = part.includes('+') ? plusToSpace(part) : part
  try {
    const decoded = spaced.includes('%') ? decodeURIComponent(spaced) : spaced
    return decoded.includes('\ufffd') ? undefined : decoded
  } catch {
    return undefined
  }
}

/** By bytes: replaceAll takes a hundred times as long for a megabyte of plus signs. */
function plusToSpace(part: string): string {
  const bytes = Buffer.from(part)
  for (let at = 0; at < bytes.length; at++) if (bytes[at] === 43) bytes[at] = 32
  return bytes.toString()
}

function decodeOrRepair(part: string): string {
  return decodePart(part) ?? (new URLSearchParams(`x=${part}`).get('x') as string)
}
