import type { Budget, Work } from '../values/work.ts'
import { Form } from './form.ts'

/** Reads a query as browsers read it: what cannot be decoded becomes U+FFFD. */
export function readQuery(text: string): Form {
  const form = new Form()
  const separators = new Separators(text)
  for (let start = 0; start < text.length; ) {
    const { end, isDoubtful } = separators.next(start)
    if (end > start) addPair(form, text.slice(start, end), isDoubtful)
    start = end + 1
  }
  return form
}

function addPair(form: Form, pair: string, isDoubtful: boolean): void {
  const equals = pair.indexOf('=')
  const name = equals < 0 ? pair : pair.slice(0, equals)
  const value = equals < 0 ? '' : pair.slice(equals + 1)
  const read = decodePart(value)
  // Servers keep, repair or refuse what cannot be decoded.
  form.add(decodePart(name) ?? repaired(name), read ?? repaired(value), isDoubtful || read === undefined)
}

const repaired = (part: string): string => new URLSearchParams(`x=${part}`).get('x') ?? ''

/** The ends of pairs. Old servers divide at `;` as well, Go drops such a pair, and the others read it as a part. */
class Separators {
  readonly #text: string
  #semicolon: number
  #ampersand = -1
  /** The part before ended at a semicolon. */
  #isDivided = false

  constructor(text: string) {
    this.#text = text
    this.#semicolon = text.indexOf(';')
  }

  /** @param start where the last pair ended, or behind it */
  next(start: number): { readonly end: number; readonly isDoubtful: boolean } {
    const text = this.#text
    // Each separator is searched once, however many there are of the other.
    if (this.#ampersand < start) this.#ampersand = placeOf(text, '&', start)
    if (this.#semicolon >= 0 && this.#semicolon < start) this.#semicolon = text.indexOf(';', start)
    const divides = this.#semicolon >= 0 && this.#semicolon < this.#ampersand
    const isDoubtful = divides || this.#isDivided
    this.#isDivided = divides
    return { end: divides ? this.#semicolon : this.#ampersand, isDoubtful }
  }
}

function placeOf(text: string, separator: string, start: number): number {
  const found = text.indexOf(separator, start)
  return found < 0 ? text.length : found
}

/** Steps that reading a name or a value takes at most, beside its characters. */
const stepsPerPart = 24
/** Maximum of different names of one form. */
const maxNames = 10_000

interface OpenPair {
  readonly end: number
  readonly isDoubtful: boolean
  /** Undefined until it is read. */
  name: string | undefined
  /** The end of the name or of the value, and as much of it as was read. */
  partEnd: number
  part: string
}

/** Reads the pairs of a form; a long name or value in several steps. */
export class FormReading implements Work {
  /** What was read; a string is why it cannot be: there are too many pairs, or they can be decoded in two ways. */
  result: Form | string = new Form()
  readonly #text: string
  readonly #separators: Separators
  readonly #maxPairs: number
  readonly #pieceLength: number
  #pair: OpenPair | undefined
  #at = 0
  #pairs = 0

  /** @param pieceLength characters that are decoded in one step, 12 or more */
  constructor(text: string, maxPairs: number, pieceLength = 32_768) {
    this.#text = text
    this.#separators = new Separators(text)
    this.#maxPairs = maxPairs
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
    if (++this.#pairs > this.#maxPairs) this.result = `of more than ${this.#maxPairs} values`
    const { end, isDoubtful } = this.#separators.next(this.#at)
    const equals = this.#text.slice(this.#at, end).indexOf('=')
    return { end, isDoubtful, name: undefined, partEnd: equals < 0 ? end : this.#at + equals, part: '' }
  }

  /** Reads the name or the value, or the next piece of it. */
  #read(pair: OpenPair, form: Form): void {
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
    if (pair.name === undefined) form.add(pair.part, '', pair.isDoubtful)
    else form.add(pair.name, pair.part, pair.isDoubtful)
    if (form.count > maxNames) this.result = `of more than ${maxNames} names`
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
