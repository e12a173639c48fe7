/** Every place at which a detector fires, for the eyes of reviewers: decisions need the first finding only. */
import type { SecretSpan } from '../../base/secret-spans.ts'
import { charset, runLength, type Text, urlSafe } from './bytes.ts'
import { allPasses } from './detectors.ts'
import { Readings, writtenPlaces } from './readings.ts'
import { DetectorFindings, type RankedDetector } from './scan.ts'

/** Bytes looked at between two turns: a millisecond for the worst text. */
const pieceBytes = 16_384
const stepsOfMaking = 65_536

/**
 * Searches each reading of the text. Yields between pieces, so that others are served in between.
 *
 * @param max places that each pass looks for
 * @returns places in the text as it is written: those of a reading that says more come first
 */
export function* findAll(text: Text, max: number): Generator<void, readonly (readonly SecretSpan[])[], void> {
  const readings = new Readings(text)
  const found: (readonly SecretSpan[])[] = []
  for (let place = 0; ; place++) {
    while (!readings.make(place, { left: stepsOfMaking })) yield
    const reading = readings.at(place)
    if (reading === undefined) break
    let spans = yield* findIn(reading, max)
    for (let before = place - 1; before >= 0; before--) spans = yield* spansAsWritten(readings, before, spans)
    found.push(spans)
  }
  // As written, an address behind a line break begins with the letter of its escape.
  const [asWritten = [], ...asRead] = found
  return [...asRead, asWritten]
}

/** Where places of a reading stand in the one before it, whose place is given. */
function* spansAsWritten(
  readings: Readings,
  place: number,
  spans: readonly SecretSpan[],
): Generator<void, readonly SecretSpan[], void> {
  const source = readings.at(place)
  const syntax = readings.at(place + 1)?.syntax
  if (source === undefined || syntax === undefined) return spans
  const places = Uint32Array.from(spans.flatMap(({ from, to }) => [from, to])).sort()
  const written = yield* writtenPlaces(source, syntax, places)
  return spans.map(span => ({
    detector: span.detector,
    from: written.get(span.from) ?? 0,
    to: written.get(span.to) ?? 0,
  }))
}

function* findIn(text: Text, max: number): Generator<void, readonly SecretSpan[], void> {
  const places: SecretSpan[] = []
  let looked = 0
  for (const pass of allPasses) {
    const found = new SpanFindings(text, max)
    for (let at = 0; at < text.bytes.length && !found.isFull; ) {
      if (looked >= pieceBytes) {
        yield
        looked = 0
      }
      const from = at
      at = pass.run(text, from, Math.min(text.bytes.length, from + pieceBytes), found)
      looked += at - from
    }
    places.push(...found.places)
  }
  return places
}

/** Remembers every finding. Its rank stays behind all others, so that a pass never stops at one. */
class SpanFindings extends DetectorFindings {
  readonly places: SecretSpan[] = []
  readonly #text: Text
  readonly #max: number

  constructor(text: Text, max: number) {
    super()
    this.#text = text
    this.#max = max
  }

  get isFull(): boolean {
    return this.places.length === this.#max
  }

  override note({ id }: RankedDetector, at: number): void {
    const last = this.places.at(-1)
    if (this.isFull || (last !== undefined && at < last.to)) return
    this.places.push({ detector: id, ...extentOf(this.#text, id, at) })
  }
}

const tokenPart = charset('A-Za-z0-9_./+=-')
const dotted = charset('A-Za-z0-9_.-')
const numberPart = charset('0-9 -')
const ibanPart = charset('A-Z0-9 ')
const phonePart = charset('0-9 ().-')
const localPart = charset('A-Za-z0-9_.%+-')
const passwordPart = charset('!-9;-~').map((isPart, code) => (isBreak(code) ? 0 : isPart))
const longest = 4_096

function isBreak(code: number): boolean {
  return ' /:@?#"\'<>'.includes(String.fromCharCode(code))
}

/** What a detector found around the place at which it fired. */
function extentOf(text: Text, id: string, at: number): { readonly from: number; readonly to: number } {
  const ahead = (set: Uint8Array, max = longest) => at + runLength(text, at, set, max)
  switch (id) {
    case 'jwt':
      return { from: runBefore(text, at - 1, urlSafe), to: ahead(dotted) }
    case 'aws-secret-key':
      return { from: at, to: at + 40 }
    case 'private-key':
      return { from: at, to: keyEnd(text, at) }
    case 'url-password':
      return { from: runBefore(text, at, passwordPart), to: at }
    case 'email':
      return { from: runBefore(text, at, localPart), to: at + 1 + runLength(text, at + 1, dotted, 255) }
    case 'phone':
      return { from: at, to: trimmed(text, at + 1 + runLength(text, at + 1, phonePart, 44)) }
    case 'card-number':
      return { from: at, to: trimmed(text, ahead(numberPart, 23)) }
    case 'us-ssn':
      return { from: at, to: at + 11 }
    case 'iban':
      return { from: at, to: trimmed(text, ahead(ibanPart, 42)) }
    default:
      return { from: at, to: ahead(tokenPart) }
  }
}

/** Where the run of characters of a set begins that ends before `end`. */
function runBefore({ bytes }: Text, end: number, set: Uint8Array): number {
  let at = end
  while (at > 0 && end - at < longest && set[bytes[at - 1]!] === 1) at--
  return at
}

const separators = charset(' ().-')

function trimmed({ bytes }: Text, end: number): number {
  let at = end
  while (separators[bytes[at - 1]!] === 1) at--
  return at
}

const keyEnds = '-----END '
const dashes = '-----'
/** Longest private key that is marked to its end, bytes. */
const longestKey = 65_536

/** Behind the last line of a key in PEM, or of its first line when the last one is missing. */
function keyEnd({ bytes }: Text, at: number): number {
  const piece = bytes.subarray(at, at + longestKey).toString('latin1')
  const last = piece.indexOf(keyEnds)
  const end = piece.indexOf(dashes, Math.max(0, last) + keyEnds.length)
  return end < 0 ? at + piece.length : at + end + dashes.length
}
