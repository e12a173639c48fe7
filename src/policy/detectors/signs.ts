import { alphanumeric, charset, digit, isWideSpace, nextByte, runLength, type Text, word } from './bytes.ts'
import type { DetectorFindings, Pass, RankedDetector } from './scan.ts'
import type { StartSearch } from './start-search.ts'

const longestLook = 256
/** Signs that follow one another closer than this are searched by SIMD, if there is such a search. */
const dense = 256

/** Looks for findings that one character reveals, such as `@`. It looks at a bounded length around that character. */
export class SignPass implements Pass {
  readonly best: number
  readonly #sign: number
  readonly #wanted: RankedDetector
  readonly #isAt: (text: Text, at: number) => boolean
  readonly #search: StartSearch | undefined

  /** @param search for the places at which to look, where nearly no sign is one of them */
  constructor(sign: string, wanted: RankedDetector, isAt: (text: Text, at: number) => boolean, search?: StartSearch) {
    this.#sign = sign.charCodeAt(0)
    this.#wanted = wanted
    this.#isAt = isAt
    this.#search = search
    this.best = wanted.rank
  }

  run(text: Text, from: number, to: number, found: DetectorFindings): number {
    const { bytes } = text
    const search = this.#search
    search?.begin()
    let at = nextByte(bytes, this.#sign, from)
    while (at < to) {
      if (this.#isAt(text, at)) {
        found.note(this.#wanted, at)
        if (found.rank === this.best) return at
      }
      // The search around one sign ends at the next one.
      let next = nextByte(bytes, this.#sign, at + 1)
      if (search !== undefined && next - at < dense && next < to) next = search.next(bytes, next, to)
      found.looks += 1 + (Math.min(next - at, longestLook) >> 1)
      at = next
    }
    return at
  }
}

/** Ends the name or the password in a URL. */
const urlBreak = charset('\\s/:@?#"\'<>')
const hostStart = charset('A-Za-z0-9[')

/** The @ of `https://user:password@host`; read backwards, so that long texts without one cost nothing. */
export function isUrlPassword(text: Text, at: number): boolean {
  const { bytes } = text
  if (at + 1 >= bytes.length || hostStart[bytes[at + 1]!] === 0) return false
  const password = partStart(text, at, longestPassword)
  const colon = password - 1
  if (colon < 0 || bytes[colon] !== 58) return false
  const name = partStart(text, colon, longestName)
  if (name < 3 || bytes[name - 1] !== 47 || bytes[name - 2] !== 47 || bytes[name - 3] !== 58) return false
  const [ofPassword, ofName] = [unitsOf(text, password, at), unitsOf(text, name, colon)]
  return ofPassword >= 3 && ofPassword <= longestPassword && ofName >= 1 && ofName <= longestName
}

/** Longest password and name that are known, UTF-16 units. */
const longestPassword = 128
const longestName = 64

/** Where the part of a URL that ends at `end` begins; -1 when it is longer than `max` UTF-16 units can be. */
function partStart({ bytes, utf8 }: Text, end: number, max: number): number {
  let maxBytes = max
  for (let at = end; end - at <= maxBytes; at--) {
    const code = at > 0 ? bytes[at - 1]! : 0
    if (at === 0 || urlBreak[code] === 1 || (!utf8 && code === 0xa0)) return at
    if (!utf8 || code < 128) continue
    if (code >= 0xc0 && isWideSpace(bytes, at - 1)) return -1
    maxBytes = 3 * max
  }
  return -1
}

/** UTF-16 units. A reading may have bytes that are no UTF-8: how many units these are is for the decoder to say. */
const unitsOf = ({ bytes, utf8 }: Text, from: number, end: number): number =>
  utf8 ? bytes.toString('utf8', from, end).length : end - from

const localPart = charset('A-Za-z0-9_%+-')
const label = charset('A-Za-z0-9-')
const letter = charset('A-Za-z')
const longestDomain = 255
const longestLabel = 63
const maxLabels = 8

/** The @ of an address: 1 to 8 labels with a dot each, then 2 to 24 letters and no letter or digit. */
export function isEmail(text: Text, at: number): boolean {
  const { bytes } = text
  if (at === 0 || localPart[bytes[at - 1]!] === 0) return false
  const end = Math.min(bytes.length, at + 1 + longestDomain)
  let from = at + 1
  for (let labels = 0; labels <= maxLabels; labels++) {
    if (labels > 0 && isTopLevel(text, from, end)) return true
    const length = runLength(text, from, label, Math.min(longestLabel + 1, end - from))
    const dot = from + length
    if (length === 0 || length > longestLabel || dot >= end || bytes[dot] !== 46) return false
    from = dot + 1
  }
  return false
}

function isTopLevel(text: Text, from: number, end: number): boolean {
  const length = runLength(text, from, letter, Math.min(25, end - from))
  if (length < 2 || length > 24) return false
  return from + length === end || alphanumeric[text.bytes[from + length]!] === 0
}

const phonePart = charset(' ().-')

/** The + of an international telephone number: 8 to 15 digits (E.164), at most two separators between them. */
export function isPhone({ bytes }: Text, plus: number): boolean {
  if (plus > 0 && word[bytes[plus - 1]!] === 1) return false
  const size = bytes.length
  let at = plus + 1
  if (at >= size || digit[bytes[at]!] === 0 || bytes[at] === 48) return false
  at++
  for (let digits = 2; digits <= 15; digits++) {
    const max = Math.min(size, at + 2)
    while (at < max && phonePart[bytes[at]!] === 1) at++
    if (at >= size || digit[bytes[at]!] === 0) return false
    at++
    if (digits >= 8 && (at >= size || digit[bytes[at]!] === 0)) return true
  }
  return false
}
