import {
  asciiBytes,
  charset,
  Runs,
  runLength,
  startsWith,
  startsWithFolded,
  type Text,
  urlSafe,
  wideSpaceBefore,
  word,
} from './bytes.ts'
import type { DetectorFindings, Pass, RankedDetector } from './scan.ts'
import { compileStartSearch, plain, type StartSearch } from './start-search.ts'

/** A literal at the beginning of a word, then `least` or more characters of the set. */
export interface Token {
  readonly literals: readonly string[]
  readonly set: Uint8Array
  readonly least: number
}

/** What tokens, JWTs and secret keys of AWS are made of, and the length of the shortest of them. */
export const part = charset('A-Za-z0-9_./+=-')
export const leastRun = 20
const runs = new Runs(part, leastRun)

/** The rest of a run that is longer is searched by SIMD, bytes. */
const longRun = 256

/** By character: 0 no part of a token, 1 part of a word, 2 another part. */
const kinds = part.map((isPart, code) => (isPart === 0 ? 0 : word[code] === 1 ? 1 : 2))

/** Of a text. */
interface RunPart {
  readonly at: number
  readonly to: number
}

interface Start extends RankedDetector, Omit<Token, 'literals'> {
  readonly literal: Uint8Array
}

export interface WantedTokens {
  readonly tokens: readonly (Token & RankedDetector)[]
  readonly awsSecret: RankedDetector | undefined
  readonly jwt: RankedDetector | undefined
}

/** Looks for tokens, secret keys of AWS and JWTs, at each beginning of a word in long runs of their characters. */
export class TokenPass implements Pass {
  readonly best: number
  /** By the first two characters: a place in `#starts`, 0 for none. */
  readonly #pairs = new Uint8Array(65_536)
  readonly #starts: Start[][] = [[]]
  readonly #awsSecret: RankedDetector | undefined
  readonly #jwt: RankedDetector | undefined
  readonly #search: StartSearch | undefined

  constructor({ tokens, awsSecret, jwt }: WantedTokens) {
    this.#awsSecret = awsSecret
    this.#jwt = jwt
    const wanted = [...tokens, awsSecret, jwt].filter(one => one !== undefined)
    this.best = Math.min(...wanted.map(({ rank }) => rank))
    for (const { literals, ...rest } of tokens) {
      for (const literal of literals) this.#add({ ...rest, literal: asciiBytes(literal) })
    }
    const literals = this.#starts.flat().map(({ literal }) => literal)
    this.#search = compileStartSearch(
      setOf(literals.map(([first]) => first)),
      setOf(literals.map(([, second]) => second)),
    )
  }

  #add(start: Start): void {
    const pair = (start.literal[0]! << 8) | start.literal[1]!
    if (this.#pairs[pair] === 0) this.#pairs[pair] = this.#starts.push([]) - 1
    this.#starts[this.#pairs[pair]!]!.push(start)
  }

  run(text: Text, from: number, to: number, found: DetectorFindings): number {
    let at = runs.next(text.bytes, from, to)
    while (at < to) {
      const start = at
      at = this.#runFrom(text, at, to, found)
      found.looks += (at - start) >> 3
      if (found.rank === this.best || at >= to) break
      at = runs.next(text.bytes, at, to)
    }
    return at
  }

  /** Looks at each beginning of a word in a run; returns the place behind the run, or `to`. */
  #runFrom(text: Text, start: number, to: number, found: DetectorFindings): number {
    const { bytes } = text
    const pairs = this.#pairs
    let at = start
    if (start > 0) {
      while (at < to && word[bytes[at - 1]!] === 1) at++
      // The run ends with this word, which belongs to the piece before.
      if (at > start && kinds[bytes[at - 1]!] === 0) return at
    }
    const longFrom = start + longRun
    while (at < to) {
      if (at >= longFrom && this.#search !== undefined) return this.#searchRun(this.#search, text, { at, to }, found)
      found.looks++
      if (pairs[(bytes[at]! << 8) | bytes[at + 1]!] !== 0) this.#findToken(text, at, found)
      const before = at === 0 ? 0 : bytes[at - 1]!
      if (before === 46 || before === 61 || at === start) this.#findOther(text, at, found)
      if (found.rank === this.best) return at
      let kind = kinds[bytes[at]!]!
      while (kind === 1 && ++at < to) kind = kinds[bytes[at]!]!
      if (kind === 1) return to
      at++
      if (kind === 0) return at
    }
    return at
  }

  /** The same for the rest of a long run, from the beginning of a word on. */
  #searchRun(search: StartSearch, text: Text, { at: start, to }: RunPart, found: DetectorFindings): number {
    const { bytes } = text
    search.begin()
    for (let at = start; at < to; at++) {
      // Behind these the search finds no secret keys and JWTs, and not all tokens.
      if (plain[bytes[at - 1]!] === 0) {
        this.#findToken(text, at, found)
        this.#findOther(text, at, found)
      }
      if (found.rank === this.best) return at
      at = search.next(bytes, at, to)
      if (at === to) return to
      if (kinds[bytes[at]!] === 0) return at + 1
      if (plain[bytes[at]!] === 0 || plain[bytes[at - 1]!] === 0) continue
      found.looks++
      this.#findToken(text, at, found)
    }
    return to
  }

  #findToken(text: Text, at: number, found: DetectorFindings): void {
    const starts = this.#starts[this.#pairs[(text.bytes[at]! << 8) | text.bytes[at + 1]!]!]!
    found.looks += starts.length
    for (let index = 0; index < starts.length; index++) {
      const start = starts[index]!
      // Of several tokens with the same beginning, the fourth character usually leaves one.
      if (start.literal.length > 3 && start.literal[3] !== text.bytes[at + 3]) continue
      const { literal, set, least } = start
      if (startsWith(text.bytes, at, literal) && found.runFrom(text, at + literal.length, set, least) >= least) {
        found.note(start, at)
        return
      }
    }
  }

  /** A JWT begins its payload behind a dot; the secret key of AWS stands behind an equals sign or begins a run. */
  #findOther(text: Text, at: number, found: DetectorFindings): void {
    found.looks += 2
    if (this.#jwt !== undefined && isJwt(text, at, found)) found.note(this.#jwt, at)
    if (this.#awsSecret !== undefined && isAwsSecret(text, at, found)) found.note(this.#awsSecret, at)
  }
}

const setOf = (codes: readonly (number | undefined)[]): Uint8Array =>
  Uint8Array.from({ length: 256 }, (_, code) => (codes.includes(code) ? 1 : 0))

const dotted = charset('A-Za-z0-9_.-')
const payloadBegins = asciiBytes('.eyJ')
const headerBegins = asciiBytes('eyJ')
const shortestHeader = 16
const longestHeader = 2_048
const shortestPayload = 24

/**
 * Whether the payload of a JWT begins here: header and payload both begin with `{"`. Headers are read from the left, at
 * most 2048 characters each: where one is longer, the next may begin behind these.
 */
function isJwt(text: Text, at: number, found: DetectorFindings): boolean {
  const { bytes } = text
  const dot = at - 1
  if (!startsWith(bytes, dot, payloadBegins)) return false
  if (found.runFrom(text, at, dotted, shortestPayload) < shortestPayload) return false
  let from = dot
  while (from > 0 && urlSafe[bytes[from - 1]!] === 1) from--
  found.looks += (dot - from) >> 2
  for (; from <= dot - shortestHeader; from++) {
    if (!startsWith(bytes, from, headerBegins)) continue
    if (dot - from <= longestHeader) return true
    from += longestHeader - 1
  }
  return false
}

const awsPart = charset('A-Za-z0-9/+')
const awsLength = 40
/** Lower case, as variables of the environment are not: `AWS_SECRET_ACCESS_KEY`, `secretAccessKey`. */
const awsNames = ['secret_access_key', 'secret-access-key', 'secretaccesskey'].map(asciiBytes)
const maxSeparators = 8
/** Between a name and the member with its value, in any order, as in the environment of a container, which may be indented. */
const valueName = asciiBytes('value')
const memberName = asciiBytes('name')
const maxBetween = 64
const namePart = charset('A-Za-z0-9_-')
const longestName = 64

/** Whether 40 characters begin here, one to eight separators behind a name that says what they are, or in a pair with one. */
function isAwsSecret(text: Text, at: number, found: DetectorFindings): boolean {
  const { bytes } = text
  // Exactly 40: the 41st is another character.
  if (runLength(text, at, awsPart, awsLength + 1) !== awsLength) return false
  const end = beforeSeparators(text, at, maxSeparators, false)
  if (end === at || isAwsName(bytes, end)) return end < at
  const value = end - valueName.length
  if (!startsWithFolded(bytes, value, valueName)) return false
  const nameEnd = beforeSeparators(text, value, maxBetween, true)
  found.looks += (value - nameEnd) >> 1
  if (nameEnd < value && isAwsName(bytes, nameEnd)) return true
  const name = at + awsLength + runLength(text, at + awsLength, betweenMembers, maxBetween)
  found.looks += (name - at) >> 2
  if (!startsWithFolded(bytes, name, memberName)) return false
  const behind = name + memberName.length
  const start = behind + runLength(text, behind, betweenMembers, maxSeparators)
  return start > behind && isAwsName(bytes, start + runLength(text, start, namePart, longestName))
}

const isAwsName = (bytes: Buffer, end: number): boolean =>
  awsNames.some(name => startsWithFolded(bytes, end - name.length, name))

/** Where the separators begin that end at `end`: no more than that many. */
function beforeSeparators(text: Text, end: number, max: number, isComma: boolean): number {
  let at = end
  for (let count = 0; count < max; count++) {
    const length = isComma && text.bytes[at - 1] === 44 ? 1 : separatorBefore(text, at)
    if (length === 0) break
    at -= length
  }
  return at
}

const separators = charset('"\'\\s:=')
const betweenMembers = charset('"\'\\s:=,')

/** Bytes of the quote, colon, equals sign or white space before `at`; 0 when there is another character. */
function separatorBefore({ bytes, utf8 }: Text, at: number): number {
  if (at === 0) return 0
  const code = bytes[at - 1]!
  if (code < 128) return separators[code]!
  if (utf8) return wideSpaceBefore(bytes, at)
  return code === 0xa0 ? 1 : 0
}
