import type { Budget, Work } from '../values/work.ts'

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

/** Steps that reading a name or a value takes at most, beside its characters. */
const stepsPerPart = 24
/** Most different names of one form. */
const maxNames = 10_000

/** A pair that is being read. */
interface OpenPair {
  readonly end: number
  /** Undefined until it is read. */
  name: string | undefined
  /** The end of the name or of the value, and as much of it as was read. */
  partEnd: number
  part: string
}

/** Reads the pairs of a form; a long name or value in several steps. */
export class FormReading implements Work {
  /** The pairs that were read; a string is why they cannot be: there are too many, or they can be read in two ways. */
  result: Pairs | string = Object.create(null)
  readonly #text: string
  readonly #mostPairs: number
  readonly #pieceLength: number
  #pair: OpenPair | undefined
  #at = 0
  #pairs = 0
  #names = 0

  /** @param pieceLength characters that are decoded in one step, 12 or more */
  constructor(text: string, mostPairs: number, pieceLength = 32_768) {
    this.#text = text
    this.#mostPairs = mostPairs
    this.#pieceLength = pieceLength
  }

  advance(budget: Budget): boolean {
    while ((this.#pair !== undefined || this.#at < this.#text.length) && typeof this.result !== 'string') {
      if (budget.left <= 0) return false
      const from = this.#at
      this.#pair ??= this.#begin()
      this.#read(this.#pair, this.result)
      budget.left -= stepsPerPart + ((this.#at - from) >> 1)
    }
    return true
  }

  #begin(): OpenPair {
    if (++this.#pairs > this.#mostPairs) this.result = `of more than ${this.#mostPairs} values`
    const end = endOfPair(this.#text, this.#at)
    const equals = this.#text.slice(this.#at, end).indexOf('=')
    return { end, name: undefined, partEnd: equals < 0 ? end : this.#at + equals, part: '' }
  }

  /** Reads the name or the value, or the next piece of it. */
  #read(pair: OpenPair, pairs: Pairs): void {
    const limit = this.#at + this.#pieceLength
    const to = limit < pair.partEnd ? outsideCharacter(this.#text, limit) : pair.partEnd
    const decoded = decodePart(this.#text.slice(this.#at, to))
    this.#at = to
    if (decoded === undefined) this.result = 'not a valid form'
    pair.part += decoded
    if (to < pair.partEnd) return
    this.#at++
    if (pair.name === undefined && to < pair.end) {
      pair.name = pair.part
      pair.part = ''
      pair.partEnd = pair.end
      return
    }
    this.#pair = undefined
    if (typeof this.result === 'string' || (pair.name === undefined && pair.part === '')) return
    const isNew = addPair(pairs, pair.name === undefined ? [pair.part, ''] : [pair.name, pair.part])
    if (isNew && ++this.#names > maxNames) this.result = `of more than ${maxNames} names`
  }
}

/** The last place up to `limit` that is not in a percent-encoded character. */
function outsideCharacter(text: string, limit: number): number {
  let at = limit
  if (text.charCodeAt(at - 1) === percent) at--
  else if (text.charCodeAt(at - 2) === percent) at -= 2
  for (let bytes = 1; bytes < 4 && isContinued(text, at); bytes++) at -= 3
  return at
}

/** Whether the percent-encoded byte here continues a character of several bytes. */
function isContinued(text: string, at: number): boolean {
  return text.charCodeAt(at) === percent && /[89ab]/i.test(text.charAt(at + 1))
}

const percent = 37

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
  return decodePart(part) ?? new URLSearchParams(`x=${part}`).get('x') ?? ''
}
