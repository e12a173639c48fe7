/** What detectors find in a held body: it is shown to reviewers as it is sent, with each finding marked. */
import { isUtf8 } from 'node:buffer'
import { type SecretSpan, secretPlaces } from '../base/secret-spans.ts'
import { hasContentCoding } from '../http/headers.ts'
import { findAll } from '../policy/detectors/find-all.ts'
import type { Divided } from '../policy/turns/turns.ts'

export interface BodyFindings {
  /** How often each detector fired, as far as was searched; empty when none did. */
  readonly counts: Readonly<Record<string, number>>
  /** The first ones, in the order of the body; none overlaps another. */
  readonly places: readonly SecretSpan[]
}

/** Findings after which a search ends: an agent may send a body with millions, and each takes memory. */
const maxFound = 10_000
/** Maximum of findings whose position is kept. */
const maxSpans = 500

/**
 * Searches in parts of about two milliseconds; a body of a few kilobytes is one.
 *
 * @returns undefined for a body with a content coding, which is not searched
 */
export function* findInBody(body: Uint8Array, rawHeaders: readonly string[]): Divided<BodyFindings | undefined> {
  if (hasContentCoding(rawHeaders)) return undefined
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength)
  const detected = yield* findAll({ bytes, utf8: isUtf8(bytes) }, maxFound)
  // One character for each byte, so that places are those of bytes.
  const named = yield* secretPlaces(bytes.toString('latin1'), maxFound)
  const places = [...detected, named].reduce(withoutOverlaps)
  const counts = new Map<string, number>()
  for (const { detector } of places) counts.set(detector, (counts.get(detector) ?? 0) + 1)
  return { counts: Object.fromEntries(counts), places: places.slice(0, maxSpans) }
}

/**
 * In order. Of findings that overlap one is kept: a detector's before a field name's, since it says more, then the earlier
 * one.
 */
function withoutOverlaps(before: readonly SecretSpan[], behind: readonly SecretSpan[]): readonly SecretSpan[] {
  const first = disjoint(before.toSorted(byPosition))
  const others = disjoint(behind.toSorted(byPosition))
  let at = 0
  const more = others.filter(({ from, to }) => {
    while (at < first.length && first[at]!.to <= from) at++
    return at === first.length || first[at]!.from >= to
  })
  return [...first, ...more].sort(byPosition)
}

function disjoint(sorted: readonly SecretSpan[]): readonly SecretSpan[] {
  let end = 0
  return sorted.filter(({ from, to }) => {
    const isFree = from >= end
    if (isFree) end = to
    return isFree
  })
}

const byPosition = (left: SecretSpan, right: SecretSpan): number => left.from - right.from
