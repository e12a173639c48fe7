/** Places in which detectors found something, or whose value is another than before, in the text that is shown. */
import { plural } from '../text.ts'
import { charactersAt } from './bytes.ts'

/** Why a piece of a text is marked. */
export interface Marking {
  readonly detector?: string | undefined
  /** How the value is another one than before. */
  readonly change?: string | undefined
  readonly isMatch?: boolean | undefined
}

/** Characters from `from` on and before `to`. */
export interface Finding extends Marking {
  readonly from: number
  readonly to: number
}

/** A piece of a text, in one finding or in none. */
export interface Segment extends Marking {
  readonly text: string
}

export const isMarked = ({ detector, change, isMatch }: Marking): boolean =>
  detector !== undefined || change !== undefined || isMatch === true

/** How many there are of each kind, in words; empty for none. */
export function markingsText(list: readonly Marking[]): string {
  const findings = list.filter(({ detector }) => detector !== undefined).length
  const changes = list.filter(({ change }) => change !== undefined).length
  const matches = list.filter(({ isMatch }) => isMatch === true).length
  const texts = [
    ...(matches > 0 ? [plural(matches, 'match', 'matches')] : []),
    ...(findings > 0 ? [plural(findings, 'finding')] : []),
    ...(changes > 0 ? [plural(changes, 'change')] : []),
  ]
  return texts.join(' and ')
}

/**
 * Adds other markings to findings. They do not overlap: the first finding within an added one is marked by both.
 *
 * @param more in order
 */
export function withMarkings(findings: readonly Finding[], more: readonly Finding[]): readonly Finding[] {
  const all = [...findings]
  const added = more.filter(({ from, to, ...marking }) => {
    const at = firstTouching(findings, from, to)
    const first = all[at]
    if (first !== undefined) all[at] = { ...first, ...marking }
    return first === undefined
  })
  return [...all, ...added].sort((left, right) => left.from - right.from)
}

/** @param places in bytes, in order, without overlaps */
export function findingsIn(bytes: Uint8Array, places: readonly Finding[]): readonly Finding[] {
  const offsets = charactersAt(
    bytes,
    places.flatMap(({ from, to }) => [from, to]),
  )
  return places.map((place, index) => ({
    ...place,
    from: offsets[index * 2] ?? 0,
    to: offsets[index * 2 + 1] ?? 0,
  }))
}

export function touching(findings: readonly Finding[], from: number, to: number): readonly Finding[] {
  const start = firstTouching(findings, from, to)
  if (start < 0) return []
  let end = start
  while (end < findings.length && (findings[end]?.from ?? to) < to) end++
  return findings.slice(start, end)
}

/** Index of the first one that touches the range; -1 when none does. */
function firstTouching(findings: readonly Finding[], from: number, to: number): number {
  let low = 0
  let high = findings.length
  while (low < high) {
    const middle = (low + high) >> 1
    if ((findings[middle]?.to ?? 0) <= from) low = middle + 1
    else high = middle
  }
  return (findings[low]?.from ?? to) < to ? low : -1
}

export interface Range {
  readonly from: number
  readonly to: number
}

export interface Source {
  readonly text: string
  readonly findings: readonly Finding[]
}

interface Coding {
  /** Characters of the escape that begins at `at`; 1 when it is a plain character. */
  readonly widthAt: (text: string, at: number) => number
  readonly decode: (text: string) => string
}

const plain: Coding = { widthAt: () => 1, decode: text => text }

/** The range in pieces, each decoded by itself. A finding that ends within an escape has all of it. */
export function segmentsOf(
  { text, findings }: Source,
  { from, to }: Range,
  coding: Coding = plain,
): readonly Segment[] {
  const inside = touching(findings, from, to)
  if (inside.length === 0) return from === to ? [] : [{ text: coding.decode(text.slice(from, to)) }]
  const segments: Segment[] = []
  let at = from
  const take = (until: number, marking?: Marking) => {
    const end = Math.max(at, Math.min(to, until))
    // An empty value may be marked, too.
    if (end > at || (from === to && marking !== undefined)) {
      segments.push({ text: coding.decode(text.slice(at, end)), ...marking })
    }
    at = end
  }
  const edges = new Edges(text, at, coding)
  for (const { from, to, ...marking } of inside) {
    take(edges.before(from))
    take(edges.after(to), marking)
  }
  take(to)
  return segments
}

/** Finds where escapes begin and end, from the left to the right. */
class Edges {
  readonly #text: string
  readonly #coding: Coding
  #at: number

  constructor(text: string, at: number, coding: Coding) {
    this.#text = text
    this.#at = at
    this.#coding = coding
  }

  before(wanted: number): number {
    if (this.#coding === plain) return wanted
    for (;;) {
      const next = this.#at + this.#coding.widthAt(this.#text, this.#at)
      if (next > wanted) return Math.min(this.#at, wanted)
      this.#at = next
    }
  }

  after(wanted: number): number {
    const start = this.before(wanted)
    return start === wanted ? wanted : start + this.#coding.widthAt(this.#text, start)
  }
}
