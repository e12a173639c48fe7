/** How trees of JSON differ, value by value. */
import { type Json, stringOf } from './json.ts'
import { inTurns } from './turns.ts'
import { type Difference, Numbered } from './values.ts'

export interface Tree {
  readonly text: string
  readonly value: Json
}

/** What all trees have at one place; undefined where one has nothing there. */
interface Place {
  readonly where: string
  readonly values: readonly (Json | undefined)[]
}

/** Work between two looks at the clock: a place or a member is 1, and so are 1,024 characters that are compared. */
const perLook = 512

/**
 * The first differences, in turns. What is written the same is not looked into, so that a tree costs no more than its text
 * but where it differs.
 */
export function treeDifferences(trees: readonly Tree[], most: number): Promise<readonly Difference[]> {
  const found: Difference[] = []
  const open: Iterator<Place | undefined>[] = [[{ where: '', values: trees.map(({ value }) => value) }].values()]
  let work = 0
  return inTurns(isTime => {
    while (found.length < most) {
      if (++work >= perLook) {
        work = 0
        if (isTime()) return undefined
      }
      const next = open.at(-1)?.next()
      if (next === undefined) break
      if (next.done) open.pop()
      if (next.done || next.value === undefined) continue
      const [first] = next.value.values
      if (first !== undefined) work += (first.to - first.from) >> 10
      if (isSame(next.value, trees)) continue
      const difference = differenceAt(next.value, trees)
      if (difference !== undefined) found.push(difference)
      open.push(placesIn(next.value))
    }
    return found
  })
}

function isSame({ values }: Place, trees: readonly Tree[]): boolean {
  const texts = values.map((value, index) => value && trees[index]?.text.slice(value.from, value.to))
  return texts.every(text => text !== undefined && text === texts[0])
}

/** Of values that have no others in them. */
function differenceAt({ where, values }: Place, trees: readonly Tree[]): Difference | undefined {
  const shown = values.map((value, index) => value && shownText(value, trees[index]?.text ?? ''))
  if (shown.every(text => text === shown[0])) return undefined
  const last = shown.at(-1) === undefined ? undefined : values.at(-1)
  return { where: where === '' ? 'body' : where.replace(/^\./, ''), values: shown, at: last }
}

/** Undefined for what has others in it. A text in quotation marks is a string. */
function shownText(value: Json, text: string): string | undefined {
  if (value.kind === 'string') return `"${stringOf(text, value)}"`
  const isWhole = value.kind === 'plain' || (value.kind === 'list' ? value.items : value.members).length === 0
  return isWhole ? text.slice(value.from, value.to) : undefined
}

/** The places one level below. Undefined: some work was done. */
function* placesIn({ where, values }: Place): Generator<Place | undefined, undefined> {
  const lists = values.map(value => (value?.kind === 'list' ? value.items : []))
  const length = Math.max(...lists.map(items => items.length))
  for (let index = 0; index < length; index++) {
    yield { where: `${where}[${index}]`, values: lists.map(items => items[index]) }
  }
  const members = new Map<string, (Json | undefined)[]>()
  for (const [index, value] of values.entries()) {
    if (value?.kind !== 'object') continue
    const numbered = new Numbered()
    for (const member of value.members) {
      const name = numbered.named(step(member.name))
      const at = members.get(name) ?? values.map(() => undefined)
      at[index] = member.value
      members.set(name, at)
      yield undefined
    }
  }
  for (const [name, at] of members) yield { where: where + name, values: at }
}

const step = (name: string): string => (/^[A-Za-z_$][\w$-]*$/.test(name) ? `.${name}` : `[${JSON.stringify(name)}]`)
