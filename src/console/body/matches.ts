/** Where a text occurs in a body. */
import type { Finding } from './findings.ts'
import { inTurns } from './turns.ts'

/** Matches that are marked. */
export const mostMatches = 1_000
/** Characters that are searched before the clock is looked at. */
const perLook = 262_144

/** The first matches, whatever the case of letters. A long text is searched in turns. */
export function findMatches(text: string, wanted: string): Promise<readonly Finding[]> {
  const form = new RegExp(wanted.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&'), 'giu')
  const found: Finding[] = []
  let from = 0
  return inTurns(isTime => {
    while (from < text.length && found.length < mostMatches) {
      const end = from + perLook
      // A match may begin in one piece and end in the next.
      for (const { 0: match, index } of text.slice(from, end + wanted.length).matchAll(form)) {
        const at = from + index
        if (at >= end || found.length === mostMatches) break
        found.push({ from: at, to: at + match.length, isMatch: true })
      }
      from = Math.max(end, found.at(-1)?.to ?? 0)
      if (isTime()) return undefined
    }
    return found
  })
}
