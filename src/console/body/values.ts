/** The single values of a request, each with a name of its own, so that requests can be compared. */

import type { Range } from './findings.ts'
import { formCoding, type Pair } from './form.ts'
import { placeOf } from './url.ts'

interface Value {
  readonly text: string
  readonly at?: Range
}

export type Values = ReadonlyMap<string, Value>

/** A value that is not the same in all of them. */
export interface Difference {
  readonly where: string
  /** Of each request; undefined: it is not there. */
  readonly values: readonly (string | undefined)[]
  /** Where it is in the body of the last one. */
  readonly at?: Range | undefined
}

export function differencesOf(all: readonly Values[]): readonly Difference[] {
  const names = new Set(all.flatMap(values => [...values.keys()]))
  const [first, ...others] = all
  return [...names]
    .filter(name => others.some(values => values.get(name)?.text !== first?.get(name)?.text))
    .map(where => ({
      where,
      values: all.map(values => values.get(where)?.text),
      at: others.at(-1)?.get(where)?.at,
    }))
}

/** A name that was there before gets a number. */
export class Numbered {
  readonly #counts = new Map<string, number>()

  named(name: string): string {
    const count = (this.#counts.get(name) ?? 0) + 1
    this.#counts.set(name, count)
    return count === 1 ? name : `${name} (${count})`
  }
}

export function queryValues(url: string): Values {
  const numbered = new Numbered()
  return new Map(placeOf(url).query.map(([name, value]) => [numbered.named(name), { text: value ?? 'no value' }]))
}

export const fieldValues = (headers: Readonly<Record<string, string>>): Values =>
  new Map(Object.entries(headers).map(([name, text]) => [name, { text }]))

export function formValues(pairs: readonly Pair[], text: string): Values {
  const numbered = new Numbered()
  const read = ({ from, to }: Range) => formCoding.decode(text.slice(from, to))
  return new Map(
    pairs.map(({ name, value }) => [
      numbered.named(read(name)),
      value === undefined ? { text: 'no value', at: name } : { text: read(value), at: value },
    ]),
  )
}

/** What is between the beginning and the end that all have. */
export function textValues(texts: readonly string[]): readonly Values[] {
  const [first = '', ...others] = texts
  const shortest = Math.min(...texts.map(({ length }) => length))
  const start = sameLength(shortest, (from, to) => {
    const piece = first.slice(from, to)
    return others.every(text => text.slice(from, to) === piece)
  })
  const end = sameLength(shortest - start, (from, to) => {
    const piece = first.slice(first.length - to, first.length - from)
    return others.every(text => text.slice(text.length - to, text.length - from) === piece)
  })
  const name = start === 0 ? 'from the beginning' : `behind ${start.toLocaleString('en')} characters`
  return texts.map(text => {
    const at = { from: start, to: text.length - end }
    return new Map(at.from === at.to ? [] : [[name, { text: text.slice(at.from, at.to), at }]])
  })
}

/** How far texts are the same: pieces are some hundred times as fast to compare as characters. */
function sameLength(most: number, isSame: (from: number, to: number) => boolean): number {
  let length = 0
  for (let piece = 65_536; piece >= 1; piece /= 16) {
    while (length + piece <= most && isSame(length, length + piece)) length += piece
  }
  return length
}
