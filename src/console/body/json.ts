/**
 * A reader of JSON (RFC 8259) for people: it keeps every member of an object, also those whose name stands twice, and
 * numbers as they are written. A node is a range of the text.
 */
import type { Range } from './findings.ts'
import { inTurns } from './turns.ts'

export interface JsonObject extends Range {
  readonly kind: 'object'
  readonly members: readonly Member[]
  /** Names that stand more than once. */
  readonly doubled: ReadonlySet<string>
}

export interface JsonList extends Range {
  readonly kind: 'list'
  readonly items: readonly Json[]
}

export interface JsonString extends Range {
  readonly kind: 'string'
}

export type Json =
  | JsonObject
  | JsonList
  | JsonString
  /** A number, true, false or null. */
  | (Range & { readonly kind: 'plain' })

export interface Member {
  readonly name: string
  /** Where the name is, with its quotation marks. */
  readonly at: Range
  readonly value: Json
}

/** Why a text is not read. */
export type JsonProblem = 'invalid' | 'deep' | 'many'

/** Levels of lists and objects: a browser cannot draw any number of them. */
export const mostLevels = 100
/** Values of a tree. */
export const mostValues = 1_000_000

/** @param doubled gets the names that stand more than once in an object */
export function readJson(text: string, doubled?: Set<string>): Json | JsonProblem {
  return new Reader(text, doubled).read(() => false) ?? 'invalid'
}

/** The same for a long text: the page answers the person meanwhile. */
export function readJsonInTurns(text: string, doubled?: Set<string>): Promise<Json | JsonProblem> {
  const reader = new Reader(text, doubled)
  return inTurns(isTime => reader.read(isTime))
}

/** The text that a string stands for. */
export const stringOf = (text: string, { from, to }: Range): string => decodeJson(text.slice(from + 1, to - 1))

/** @param inner what is between the quotation marks, or a part of it */
const decodeJson = (inner: string): string => (inner.includes('\\') ? JSON.parse(`"${inner}"`) : inner)

/** Escapes of strings, for findings that are marked in them. */
export const jsonCoding = {
  widthAt: (text: string, at: number): number => {
    if (text.charCodeAt(at) !== 0x5c) return 1
    return text.charCodeAt(at + 1) === 0x75 ? 6 : 2
  },
  decode: decodeJson,
}

const number = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y
const hex = /[0-9a-fA-F]{4}/y
const words = ['true', 'false', 'null']

/** A value whose end was not read yet. */
type Open =
  | {
      readonly kind: 'object'
      readonly from: number
      readonly members: Member[]
      /** Of an object with many members: names that came already. */
      names: Set<string> | undefined
      doubled: Set<string> | undefined
      /** Where the name of the member is that is read. */
      at: Range
    }
  | { readonly kind: 'list'; readonly from: number; readonly items: Json[] }

const none: ReadonlySet<string> = new Set()
const noRange: Range = { from: 0, to: 0 }
/** Members of an object whose names are compared one by one. */
const fewMembers = 12
/** Values between two looks at the clock. */
const perLook = 512

class Reader {
  readonly #text: string
  readonly #open: Open[] = []
  readonly #doubled: Set<string> | undefined
  #at = 0
  #values = 0

  constructor(text: string, doubled: Set<string> | undefined) {
    this.#text = text
    this.#doubled = doubled
  }

  /** Reads to the end, or until `isTime`: then undefined, and the next call goes on. */
  read(isTime: () => boolean): Json | JsonProblem | undefined {
    for (let count = 1; ; count++) {
      if (count % perLook === 0 && isTime()) return undefined
      const begun = this.#begin()
      const result = begun === undefined || typeof begun === 'string' ? begun : this.#end(begun)
      if (result !== undefined) return result
    }
  }

  /** The next value, when it is whole. Undefined: its first item is the next value. */
  #begin(): Json | JsonProblem | undefined {
    const top = this.#open.at(-1)
    if (top?.kind === 'object') {
      this.#space()
      const from = this.#at
      if (this.#text.charCodeAt(from) !== 0x22 || !this.#string()) return 'invalid'
      top.at = { from, to: this.#at }
      if (!this.#takes(':')) return 'invalid'
    }
    this.#space()
    if (++this.#values > mostValues) return 'many'
    const from = this.#at
    switch (this.#text.charCodeAt(from)) {
      case 0x7b:
        return this.#enter({ kind: 'object', from, members: [], names: undefined, doubled: undefined, at: noRange })
      case 0x5b:
        return this.#enter({ kind: 'list', from, items: [] })
      case 0x22:
        return this.#string() ? { kind: 'string', from, to: this.#at } : 'invalid'
      default:
        return this.#plain() ? { kind: 'plain', from, to: this.#at } : 'invalid'
    }
  }

  #enter(value: Open): Json | JsonProblem | undefined {
    if (this.#open.length >= mostLevels) return 'deep'
    this.#at++
    if (this.#takes(value.kind === 'object' ? '}' : ']')) return this.#closed(value)
    this.#open.push(value)
    return undefined
  }

  /** Takes a whole value into the one around it, and ends those that end here. Undefined: another value follows. */
  #end(value: Json): Json | JsonProblem | undefined {
    for (let whole = value; ; ) {
      const top = this.#open.at(-1)
      if (top === undefined) {
        this.#space()
        return this.#at === this.#text.length ? whole : 'invalid'
      }
      if (top.kind === 'list') top.items.push(whole)
      else this.#add(top, whole)
      if (this.#takes(',')) return undefined
      if (!this.#takes(top.kind === 'object' ? '}' : ']')) return 'invalid'
      this.#open.pop()
      whole = this.#closed(top)
    }
  }

  #add(object: Extract<Open, { readonly kind: 'object' }>, value: Json): void {
    const { members, at } = object
    const name = stringOf(this.#text, at)
    // Most objects are small, and a set for each of them costs more than it saves.
    if (members.length === fewMembers) object.names = new Set(members.map(member => member.name))
    if (object.names?.has(name) ?? members.some(member => member.name === name)) {
      object.doubled ??= new Set()
      object.doubled.add(name)
      this.#doubled?.add(name)
    }
    object.names?.add(name)
    members.push({ name, at, value })
  }

  #closed(value: Open): Json {
    const { from } = value
    if (value.kind === 'list') return { kind: 'list', from, to: this.#at, items: value.items }
    return { kind: 'object', from, to: this.#at, members: value.members, doubled: value.doubled ?? none }
  }

  /** Moves behind the string that begins here; false when it is none. */
  #string(): boolean {
    for (let at = this.#at + 1; at < this.#text.length; at++) {
      const code = this.#text.charCodeAt(at)
      if (code === 0x22) {
        this.#at = at + 1
        return true
      }
      if (code < 0x20) return false
      if (code !== 0x5c) continue
      const escaped = this.#text[++at] ?? ''
      if (escaped === 'u') {
        hex.lastIndex = at + 1
        if (!hex.test(this.#text)) return false
        at += 4
      } else if (!'"\\/bfnrt'.includes(escaped) || escaped === '') return false
    }
    return false
  }

  #plain(): boolean {
    const word = words.find(one => this.#text.startsWith(one, this.#at))
    if (word !== undefined) this.#at += word.length
    else {
      number.lastIndex = this.#at
      if (!number.test(this.#text)) return false
      this.#at = number.lastIndex
    }
    return true
  }

  #takes(char: string): boolean {
    this.#space()
    if (this.#text[this.#at] !== char) return false
    this.#at++
    return true
  }

  #space(): void {
    for (; this.#at < this.#text.length; this.#at++) {
      const code = this.#text.charCodeAt(this.#at)
      if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) return
    }
  }
}
