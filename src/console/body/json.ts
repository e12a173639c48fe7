/**
 * A reader of JSON (RFC 8259) for people: it keeps every member of an object, also those whose name stands twice, and
 * numbers as they are written. A node is a range of the text.
 */
import type { Range } from './findings.ts'

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
export const mostValues = 200_000

export function readJson(text: string): Json | JsonProblem {
  const reader = new Reader(text)
  const value = reader.whole()
  return value ?? reader.problem
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

class Reader {
  readonly #text: string
  #at = 0
  #values = 0
  problem: JsonProblem = 'invalid'

  constructor(text: string) {
    this.#text = text
  }

  whole(): Json | undefined {
    const value = this.#value(0)
    this.#space()
    return this.#at === this.#text.length ? value : undefined
  }

  #value(level: number): Json | undefined {
    this.#space()
    if (++this.#values > mostValues) return this.#stop('many')
    const from = this.#at
    switch (this.#text.charCodeAt(from)) {
      case 0x7b:
        return level < mostLevels ? this.#object(level) : this.#stop('deep')
      case 0x5b:
        return level < mostLevels ? this.#list(level) : this.#stop('deep')
      case 0x22:
        return this.#string() ? { kind: 'string', from, to: this.#at } : undefined
      default:
        return this.#plain() ? { kind: 'plain', from, to: this.#at } : undefined
    }
  }

  #stop(problem: JsonProblem): undefined {
    this.problem = problem
  }

  #object(level: number): JsonObject | undefined {
    const from = this.#at++
    const members: Member[] = []
    const names = new Set<string>()
    const doubled = new Set<string>()
    if (!this.#takes('}')) {
      do {
        const member = this.#member(level)
        if (member === undefined) return undefined
        if (names.has(member.name)) doubled.add(member.name)
        names.add(member.name)
        members.push(member)
      } while (this.#takes(','))
      if (!this.#takes('}')) return undefined
    }
    return { kind: 'object', from, to: this.#at, members, doubled }
  }

  #member(level: number): Member | undefined {
    this.#space()
    const from = this.#at
    if (this.#text[from] !== '"' || !this.#string()) return undefined
    const at = { from, to: this.#at }
    const value = this.#takes(':') ? this.#value(level + 1) : undefined
    return value && { name: stringOf(this.#text, at), at, value }
  }

  #list(level: number): JsonList | undefined {
    const from = this.#at++
    const items: Json[] = []
    if (!this.#takes(']')) {
      do {
        const item = this.#value(level + 1)
        if (item === undefined) return undefined
        items.push(item)
      } while (this.#takes(','))
      if (!this.#takes(']')) return undefined
    }
    return { kind: 'list', from, to: this.#at, items }
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
