/** The lines of the list and where each of them is, so that only those on the screen need be drawn. */
import type { Section } from './arrangement.ts'
import type { Row } from './store.ts'

/** Pixels; the style sheet has the same. */
export const rowHeight = 84
export const headHeight = 44

/** A row, or the heading of its section when `row` is absent. */
interface Entry {
  readonly section: Section
  readonly row?: Row
  /** Pixels from the beginning of the list. */
  readonly top: number
  /** Which row it is, from 0. */
  readonly at: number
}

export interface Rows {
  readonly entries: readonly Entry[]
  readonly count: number
  readonly height: number
}

export function entriesOf(sections: readonly Section[]): Rows {
  const entries: Entry[] = []
  let top = 0
  let at = 0
  for (const section of sections) {
    if (section.by !== undefined) {
      entries.push({ section, top, at })
      top += headHeight
    }
    for (const row of section.rows) {
      entries.push({ section, row, top, at: at++ })
      top += rowHeight
    }
  }
  return { entries, count: at, height: top }
}

/** Index of the entry that covers a height, or of the nearest one. */
export function entryAt({ entries }: Rows, height: number): number {
  let low = 0
  let high = entries.length - 1
  while (low < high) {
    const middle = (low + high + 1) >> 1
    if ((entries[middle]?.top ?? 0) <= height) low = middle
    else high = middle - 1
  }
  return Math.max(0, low)
}
