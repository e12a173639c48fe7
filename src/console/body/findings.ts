/** Places in which detectors found something, in the text that is shown. */
import { charactersAt } from './bytes.ts'

export interface Finding {
  readonly detector: string
  /** Characters from `from` on and before `to`. */
  readonly from: number
  readonly to: number
}

/** A piece of a text, in one finding or in none. */
export interface Segment {
  readonly text: string
  readonly detector?: string | undefined
}

/** @param places in bytes, in order, without overlaps */
export function findingsIn(bytes: Uint8Array, places: readonly Finding[]): readonly Finding[] {
  const offsets = charactersAt(
    bytes,
    places.flatMap(({ from, to }) => [from, to]),
  )
  return places.map(({ detector }, index) => ({
    detector,
    from: offsets[index * 2] ?? 0,
    to: offsets[index * 2 + 1] ?? 0,
  }))
}

/** Those that touch the range. */
export function touching(findings: readonly Finding[], from: number, to: number): readonly Finding[] {
  let low = 0
  let high = findings.length
  while (low < high) {
    const middle = (low + high) >> 1
    if ((findings[middle]?.to ?? 0) <= from) low = middle + 1
    else high = middle
  }
  let end = low
  while (end < findings.length && (findings[end]?.from ?? to) < to) end++
  return findings.slice(low, end)
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
  const take = (until: number, detector?: string) => {
    const end = Math.max(at, Math.min(to, until))
    if (end > at) segments.push({ text: coding.decode(text.slice(at, end)), detector })
    at = end
  }
  const edges = new Edges(text, at, coding)
  for (const { detector, ...place } of inside) {
    take(edges.before(place.from))
    take(edges.after(place.to), detector)
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
