/** What detectors find in a held body: it is shown to reviewers as it is sent, with each finding marked. */
import { isUtf8 } from 'node:buffer'
import { setImmediate } from 'node:timers/promises'
import { secretPlaces } from '../base/secret-places.ts'
import { findAll, type Place } from '../policy/detectors/find-all.ts'

export interface BodyFindings {
  /** How often each detector fired; empty when none did. */
  readonly counts: Readonly<Record<string, number>>
  /** The first ones, in the order of the body; none overlaps another. */
  readonly places: readonly Place[]
}

/** Most places that are kept. All are counted. */
const mostPlaces = 500

/** @returns undefined for a body with a content coding, which is not searched */
export async function findInBody(body: Uint8Array, rawHeaders: readonly string[]): Promise<BodyFindings | undefined> {
  if (isEncoded(rawHeaders)) return undefined
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength)
  const detected = await inTurns(findAll({ bytes, utf8: isUtf8(bytes) }))
  // One character for each byte, so that places are those of bytes.
  const named = await inTurns(secretPlaces(bytes.toString('latin1')))
  const places = withoutOverlaps(detected, named)
  const counts = new Map<string, number>()
  for (const { detector } of places) counts.set(detector, (counts.get(detector) ?? 0) + 1)
  return { counts: Object.fromEntries(counts), places: places.slice(0, mostPlaces) }
}

async function inTurns<T>(work: Generator<void, T, void>): Promise<T> {
  for (let step = work.next(); ; step = work.next()) {
    if (step.done === true) return step.value
    await setImmediate()
  }
}

/** In order. Of findings that overlap a detector's comes first, since it says more than a name, and then the earlier one. */
function withoutOverlaps(detected: readonly Place[], named: readonly Place[]): readonly Place[] {
  const first = disjoint(detected.toSorted(byPlace))
  const others = disjoint(named.toSorted(byPlace))
  let at = 0
  const more = others.filter(({ from, to }) => {
    while (at < first.length && first[at]!.to <= from) at++
    return at === first.length || first[at]!.from >= to
  })
  return [...first, ...more].sort(byPlace)
}

function disjoint(sorted: readonly Place[]): readonly Place[] {
  let end = 0
  return sorted.filter(({ from, to }) => {
    const isFree = from >= end
    if (isFree) end = to
    return isFree
  })
}

const byPlace = (left: Place, right: Place): number => left.from - right.from

function isEncoded(rawHeaders: readonly string[]): boolean {
  return rawHeaders.some(
    (name, index) =>
      index % 2 === 0 &&
      name.toLowerCase() === 'content-encoding' &&
      rawHeaders[index + 1]!.trim().toLowerCase() !== 'identity',
  )
}
