/** The single values of a request, each with a name of its own, so that requests can be compared. */

import type { TextKind } from '../text.ts'
import { formCoding, type Pair } from './form.ts'
import { type Json, readJson, stringOf } from './json.ts'
import type { ReadBody } from './kind.ts'
import { placeOf } from './url.ts'

/** A text in quotation marks is a string of JSON. */
export type Values = ReadonlyMap<string, string>

/** Adds values under names; a name that was there before gets a number. */
class Collected {
  readonly values = new Map<string, string>()
  readonly #counts = new Map<string, number>()

  add(name: string, value: string): void {
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
  for (const [name, value] of placeOf(url).query) collected.add(name, value ?? 'no value')
  return collected.values
}

export const fieldValues = (headers: Readonly<Record<string, string>>): Values => new Map(Object.entries(headers))

export interface ComparedValues {
  readonly values: readonly [Values, Values]
  /** What their texts are. */
  readonly kind: TextKind
}

/** Of bodies that are not of one kind, the texts are compared. */
export function bodyValues(before: ReadBody | 'none', after: ReadBody | 'none'): ComparedValues {
  const [old, now] = [before, after].map(body => (body === 'none' ? undefined : body))
  const trees = [old, now].map(body => body && treeOf(body))
  if (old && now && trees[0] && trees[1])
    return { values: [jsonValues(trees[0], old.text), jsonValues(trees[1], now.text)], kind: 'value' }
  const pairs = [old, now].map(body => (body?.shape.kind === 'form' ? body.shape.pairs : undefined))
  if (old && now && pairs[0] && pairs[1])
    return { values: [formValues(pairs[0], old.text), formValues(pairs[1], now.text)], kind: 'bytes' }
  return { values: textValues(old?.text ?? '', now?.text ?? ''), kind: 'bytes' }
}

function treeOf({ shape, text }: ReadBody): Json | undefined {
  if (shape.kind === 'json') return shape.value
  if (shape.kind !== 'tool' && shape.kind !== 'messages') return undefined
  const value = readJson(text)
  return typeof value === 'string' ? undefined : value
}

function jsonValues(root: Json, text: string): Values {
  const values = new Map<string, string>()
  const walk = (value: Json, where: string) => {
    if (value.kind === 'list' && value.items.length > 0) {
      for (const [index, item] of value.items.entries()) walk(item, `${where}[${index}]`)
    } else if (value.kind === 'object' && value.members.length > 0) {
      const names = new Collected()
      for (const member of value.members) walk(member.value, where + names.named(step(member.name)))
    } else values.set(where === '' ? 'body' : where.replace(/^\./, ''), shown(value, text))
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
  for (const { name, value } of pairs) collected.add(read(name), value === undefined ? 'no value' : read(value))
  return collected.values
}

/** What is between the beginning and the end that both have. */
function textValues(before: string, after: string): readonly [Values, Values] {
  if (before === after) return [new Map(), new Map()]
  const shorter = Math.min(before.length, after.length)
  let start = 0
  while (start < shorter && before[start] === after[start]) start++
  let end = 0
  while (end < shorter - start && before.at(-1 - end) === after.at(-1 - end)) end++
  const name = start === 0 ? 'from the beginning' : `behind ${start.toLocaleString('en')} characters`
  const middle = (text: string): Values => {
    const part = text.slice(start, text.length - end)
    return new Map(part === '' ? [] : [[name, part]])
  }
  return [middle(before), middle(after)]
}
