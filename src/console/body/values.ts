/** The single values of a request, each with a name of its own, so that requests can be compared. */

import type { TextKind } from '../text.ts'
import type { Range } from './findings.ts'
import { formCoding, type Pair } from './form.ts'
import { type Json, readJson, stringOf } from './json.ts'
import type { ReadBody } from './kind.ts'
import { placeOf } from './url.ts'

interface Value {
  /** A text in quotation marks is a string of JSON. */
  readonly text: string
  /** Where it is in the body. */
  readonly at?: Range
}

export type Values = ReadonlyMap<string, Value>

/** Adds values under names; a name that was there before gets a number. */
class Collected {
  readonly values = new Map<string, Value>()
  readonly #counts = new Map<string, number>()

  add(name: string, value: Value): void {
    this.values.set(this.named(name), value)
  }

  named(name: string): string {
    const count = (this.#counts.get(name) ?? 0) + 1
    this.#counts.set(name, count)
    return count === 1 ? name : `${name} (${count})`
  }
}

export function queryValues(url: string): Values {
  const collected = new Collected()
  for (const [name, value] of placeOf(url).query) collected.add(name, { text: value ?? 'no value' })
  return collected.values
}

export const fieldValues = (headers: Readonly<Record<string, string>>): Values =>
  new Map(Object.entries(headers).map(([name, text]) => [name, { text }]))

export interface ComparedValues {
  /** Of each body. */
  readonly values: readonly Values[]
  /** What their texts are. */
  readonly kind: TextKind
}

/** Of bodies that are not of one kind, the texts are compared. */
export function bodyValues(bodies: readonly (ReadBody | 'none')[]): ComparedValues {
  const read = bodies.map(body => (body === 'none' ? undefined : body))
  return (
    valuesBy(read, treeOf, jsonValues, 'value') ??
    valuesBy(read, pairsIn, formValues, 'bytes') ?? {
      values: textValues(read.map(body => body?.text ?? '')),
      kind: 'bytes',
    }
  )
}

/** Undefined when one of the bodies is of another kind. */
function valuesBy<T>(
  bodies: readonly (ReadBody | undefined)[],
  read: (body: ReadBody) => T | undefined,
  list: (given: T, text: string) => Values,
  kind: TextKind,
): ComparedValues | undefined {
  const values: Values[] = []
  for (const body of bodies) {
    const given = body && read(body)
    if (given === undefined) return undefined
    values.push(list(given, body?.text ?? ''))
  }
  return { values, kind }
}

const pairsIn = ({ shape }: ReadBody): readonly Pair[] | undefined => (shape.kind === 'form' ? shape.pairs : undefined)

function treeOf({ shape, text }: ReadBody): Json | undefined {
  if (shape.kind === 'json') return shape.value
  if (!['tool', 'messages', 'graphql'].includes(shape.kind)) return undefined
  const value = readJson(text)
  return typeof value === 'string' ? undefined : value
}

function jsonValues(root: Json, text: string): Values {
  const values = new Map<string, Value>()
  const walk = (value: Json, where: string) => {
    if (value.kind === 'list' && value.items.length > 0) {
      for (const [index, item] of value.items.entries()) walk(item, `${where}[${index}]`)
    } else if (value.kind === 'object' && value.members.length > 0) {
      const names = new Collected()
      for (const member of value.members) walk(member.value, where + names.named(step(member.name)))
    } else values.set(where === '' ? 'body' : where.replace(/^\./, ''), { text: shown(value, text), at: value })
  }
  walk(root, '')
  return values
}

const step = (name: string): string => (/^[A-Za-z_$][\w$-]*$/.test(name) ? `.${name}` : `[${JSON.stringify(name)}]`)

const shown = (value: Json, text: string): string =>
  value.kind === 'string' ? `"${stringOf(text, value)}"` : text.slice(value.from, value.to)

function formValues(pairs: readonly Pair[], text: string): Values {
  const collected = new Collected()
  const read = ({ from, to }: Pair['name']) => formCoding.decode(text.slice(from, to))
  for (const { name, value } of pairs) {
    collected.add(read(name), value === undefined ? { text: 'no value', at: name } : { text: read(value), at: value })
  }
  return collected.values
}

/** What is between the beginning and the end that all have. */
function textValues(texts: readonly string[]): readonly Values[] {
  const [first = '', ...others] = texts
  let start = Math.min(...texts.map(({ length }) => length))
  for (const text of others) start = sameLength(start, at => text[at] === first[at])
  let end = Math.min(...texts.map(({ length }) => length)) - start
  for (const text of others) end = sameLength(end, at => text.at(-1 - at) === first.at(-1 - at))
  const name = start === 0 ? 'from the beginning' : `behind ${start.toLocaleString('en')} characters`
  return texts.map(text => {
    const at = { from: start, to: text.length - end }
    return new Map(at.from === at.to ? [] : [[name, { text: text.slice(at.from, at.to), at }]])
  })
}

function sameLength(max: number, isSame: (at: number) => boolean): number {
  let length = 0
  while (length < max && isSame(length)) length++
  return length
}
