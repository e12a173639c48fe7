/**
 * The parts of a long text that can hold a secret. Most of what agents send is prose and source code with nothing that looks
 * like one: a fast search of the bytes as written passes over it, and no reading of its escapes is made.
 */
import type { Budget, Work } from '../values/work.ts'
import { keepRuns, searchCode } from './run-search.ts'
import {
  all,
  block,
  bytesOf,
  type CharCodes,
  classes,
  compileSearch,
  current,
  from,
  get,
  goOnBy,
  i32,
  i64,
  i64Const,
  type LoadedSearch,
  load,
  loaded,
  next,
  pair,
  set,
  simd,
  tee,
  vector,
} from './simd.ts'
import { leastRun, part } from './tokens.ts'

/**
 * What is taken or left as a whole, bytes. The blocks before and behind are taken with it: there stand the names and
 * separators that detectors look for around a finding, at most 192 characters of eight bytes each (`\\\\\\\"` in JSON in JSON).
 */
const blockBytes = 2_048
/** Blocks that are loaded at a time. */
const windowBytes = 7 * blockBytes
/** Bytes that are looked at together. */
const stretch = 64
const bytesPerStep = 128
/** Steps of a stretch that needs a closer look. */
const lookSteps = 8

/** What may begin beside a run of the characters of tokens: a URL with a password, and escapes such as `%41` and `\u0041`. */
const signs = { at: 0x40, percent: 0x25, backslash: 0x5c }
/** Of the characters behind a backslash, those of `\/` and `\u` alone have this bit, and these alone stand for parts of tokens. */
const ofTokens = 1
const privateKey = Buffer.from('-----BEGIN')

/** However a run stands, it holds so many whole groups of four characters. */
const wholeGroups = (leastRun - 3) >> 2
/** All parts of tokens are behind this character; white space, quotes and brackets are not. */
const beforeParts = part.indexOf(1) - 1

/** Which groups of sixteen bytes may be parts of tokens. Adds the signs among them to `classes`. */
const groupsAt = (offset: number): CharCodes => [
  ...[...load(offset), ...tee(loaded), ...bytesOf(all(beforeParts)), ...simd(vector.greater)],
  ...[...bytesOf(all(255)), ...simd(vector.equalOf4)],
  ...[
    ...get(loaded),
    ...bytesOf(all(signs.backslash)),
    ...simd(vector.equal),
    ...load(offset + 1),
    ...simd(vector.and),
  ],
  ...[...get(loaded), ...bytesOf(all(signs.at)), ...simd(vector.equal), ...simd(vector.or)],
  ...[...get(loaded), ...bytesOf(all(signs.percent)), ...simd(vector.equal), ...simd(vector.or)],
  ...[...(offset === 0 ? [] : [...get(classes), ...simd(vector.or)]), ...set(classes)],
]

/** The first stretch from `from` on with a sign, or in which a run may end; else `to`. */
const stretchCode = (): CharCodes => [
  ...[block.loop, block.empty],
  ...[
    ...groupsAt(0),
    ...groupsAt(16),
    ...simd(vector.narrow4),
    ...groupsAt(32),
    ...groupsAt(48),
    ...simd(vector.narrow4),
  ],
  ...[...simd(vector.narrow2), ...simd(vector.bitmask), i64.fromI32, ...i64Const(wholeGroups - 1), i64.shl],
  // The last groups of the stretch before come first.
  ...[...get(current), i64.or, ...tee(next), ...set(pair)],
  ...[...get(next), ...i64Const(stretch / 4), i64.shiftRight, ...set(current), ...keepRuns(wholeGroups)],
  ...[...get(pair), i32.fromI64, ...get(classes), ...bytesOf(all(ofTokens)), ...simd(vector.and)],
  ...[...simd(vector.anyTrue), i32.or, block.if, block.empty, ...get(from), block.return, block.end],
  ...goOnBy(stretch),
]

/** Over the same bytes: a fast one that finds too much, and an exact one for runs. */
interface Searches {
  readonly stretches: LoadedSearch
  readonly runs: LoadedSearch
}

function compile(): Searches | undefined {
  const stretches = compileSearch(stretchCode)
  const runs = compileSearch(() => searchCode(part, leastRun))
  return stretches && runs && { stretches, runs }
}

const searches = compile()

/** Between the parts of an excerpt: no finding goes over it. */
const lineBreak = Buffer.from('\n')

export class Excerpt implements Work {
  /** The parts, or all of the text where they are most of it. */
  result: Buffer
  readonly #bytes: Buffer
  /** By block, with one before the first and one behind the last. */
  readonly #isTaken: Uint8Array
  #at = 0
  /** Blocks taken, and stretches that were looked at for nothing. */
  #effort = 0
  #isDone: boolean

  constructor(bytes: Buffer) {
    this.result = bytes
    this.#bytes = bytes
    const blocks = Math.ceil(bytes.length / blockBytes)
    this.#isDone = searches === undefined || blocks < 2
    this.#isTaken = new Uint8Array(blocks + 2)
  }

  advance(budget: Budget): boolean {
    const bytes = this.#bytes
    while (!this.#isDone) {
      if (budget.left <= 0) return false
      const before = this.#effort
      const end = Math.min(bytes.length, this.#at + windowBytes)
      if (searches !== undefined) this.#lookAt(searches, this.#at, end)
      budget.left -= Math.ceil((end - this.#at) / bytesPerStep) + lookSteps * (this.#effort - before)
      this.#at = end
      if (end === bytes.length) this.result = this.#taken()
      this.#isDone = end === bytes.length || this.#isMuch
    }
    return true
  }

  /** All of the text is to be searched then: to look for its parts is not worth the effort. */
  get #isMuch(): boolean {
    return this.#effort > 16 + this.#at / blockBytes / 2
  }

  /** Takes the blocks of a window in which a finding may begin. */
  #lookAt({ stretches, runs }: Searches, from: number, end: number): void {
    const bytes = this.#bytes
    const size = end - from
    stretches.load(bytes, from, end)
    for (let at = 0; at < size; ) {
      const found = stretches.find(at, size)
      const stop = Math.min(size, found + stretch)
      // Of a run at the end of a stretch or of the window, not all groups were seen there.
      let place = runs.find(Math.max(at, found - 4 * wholeGroups), stop)
      if (place === stop) place = signIn(bytes, from + found, from + stop) - from
      at = place < stop ? this.#take(from + place) - from : stop
      this.#effort++
    }
    const piece = bytes.subarray(from, end + privateKey.length - 1)
    for (let at = piece.indexOf(privateKey); at >= 0; at = piece.indexOf(privateKey, at)) {
      at = this.#take(from + at) - from
      this.#effort++
    }
  }

  /** Takes the block of a place; returns where the next one begins. */
  #take(place: number): number {
    const index = Math.floor(place / blockBytes)
    this.#isTaken[index + 1] = 1
    return (index + 1) * blockBytes
  }

  /** What was taken, with the blocks before and behind. */
  #taken(): Buffer {
    const bytes = this.#bytes
    const isTaken = this.#isTaken
    const blocks = isTaken.length - 2
    const parts: Buffer[] = []
    let length = 0
    for (let index = 0, start = -1; index <= blocks; index++) {
      const isIn = index < blocks && isTaken[index]! + isTaken[index + 1]! + isTaken[index + 2]! > 0
      if (isIn && start < 0) start = backslashesBefore(bytes, index * blockBytes)
      if (isIn || start < 0) continue
      const taken = bytes.subarray(start, index * blockBytes)
      parts.push(taken, lineBreak)
      length += taken.length
      start = -1
    }
    return 2 * length > bytes.length ? bytes : Buffer.concat(parts)
  }
}

/** Where the backslashes begin that end at a place. What they stand for depends on their number, so no part begins among them. */
function backslashesBefore(bytes: Buffer, end: number): number {
  let at = end
  while (at > 0 && bytes[at - 1] === signs.backslash) at--
  return at
}

/** The first of the signs from a place on and before another, or that one. */
function signIn(bytes: Buffer, start: number, end: number): number {
  for (let at = start; at < end; at++) {
    const code = bytes[at]!
    if (code === signs.at || code === signs.percent) return at
    if (code === signs.backslash && (bytes[at + 1]! & ofTokens) === ofTokens) return at
  }
  return end
}
