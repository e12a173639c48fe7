/** Places in the text of a policy: of the members that the gateway names, and of what is typed. */
import { type Json, readJson } from '../body/json.ts'

/** Where a path such as `rules[0].conditions[1]` begins, characters; of what is not there, where its parent begins. */
export function placeOfPath(text: string, path: string): number {
  const root = readJson(text)
  if (typeof root === 'string') return 0
  let value: Json = root
  let at = value.from
  for (const [, name, index] of path.matchAll(/([^.[\]]+)|\[(\d+)\]/g)) {
    if (value.kind === 'object' && name !== undefined) {
      const member = value.members.find(one => one.name === name)
      if (member === undefined) return at
      at = member.at.from
      value = member.value
    } else if (value.kind === 'list' && index !== undefined) {
      const item: Json | undefined = value.items[Number(index)]
      if (item === undefined) return at
      at = item.from
      value = item
    } else return at
  }
  return at
}

/** From 1. */
export const lineOf = (text: string, at: number): number => text.slice(0, at).split('\n').length

/** Where `JSON.parse` stops, in words and as a place. */
export function syntaxProblem(text: string): { readonly message: string; readonly at: number } | undefined {
  try {
    JSON.parse(text)
    return undefined
  } catch (error) {
    const message = error instanceof Error ? error.message : 'This is not JSON.'
    const [, position] = /position (\d+)/.exec(message) ?? []
    const [, line, column] = /line (\d+) column (\d+)/.exec(message) ?? []
    const at = position === undefined ? startOf(text, Number(line ?? 1)) + Number(column ?? 1) - 1 : Number(position)
    return { message: message.replace(/ in JSON at position.*| \(line .*/, ''), at: Math.min(at, text.length) }
  }
}

/** Where a line begins, characters. */
export function startOf(text: string, line: number): number {
  let at = 0
  for (let count = 1; count < line; count++) {
    const next = text.indexOf('\n', at)
    if (next < 0) return text.length
    at = next + 1
  }
  return at
}

/** What stands around the cursor: whether a name or a value is typed, of which member, and the word so far. */
export interface Spot {
  readonly kind: 'name' | 'value'
  /** The member whose value is typed; empty for names. */
  readonly member: string
  /** The list or object that it is in: `rules`, `conditions`, empty at the top. */
  readonly within: string
  readonly word: string
  readonly from: number
}

export function spotAt(text: string, at: number): Spot {
  const before = text.slice(0, at)
  const [word = ''] = /[\w.$-]*$/.exec(before) ?? []
  const from = at - word.length
  const rest = before.slice(0, from).replace(/"$/, '').trimEnd()
  const [, member = ''] = /"([^"\\]*)"\s*:$/.exec(rest) ?? []
  return { kind: member === '' ? 'name' : 'value', member, within: listAround(rest), word, from }
}

/** The name of the innermost list or object that is open at the end. */
function listAround(text: string): string {
  const open: string[] = []
  for (const [match] of text.matchAll(/"(?:[^"\\]|\\.)*"\s*:\s*[[{]|"(?:[^"\\]|\\.)*"|[[{\]}]/g)) {
    if (/^[\]}]/.test(match)) open.pop()
    else if (/[[{]$/.test(match)) open.push(/^"([^"]*)"/.exec(match)?.[1] ?? '')
  }
  return open.findLast(name => name !== '') ?? ''
}
