/** Text patterns that need no regular expression: globs and path patterns. Both run in bounded time. */

import { didYouMean } from '../../../base/nearest.ts'
import { segmentClass, segmentClasses } from '../../../base/segment-class.ts'
import { resume } from '../../turns/evaluation.ts'
import type { Budget, Work } from '../../values/work.ts'

export type TextTest = (text: string) => boolean

/** `*` any run, `?` one character, `\` escapes; the whole text. */
export function compileGlob(pattern: string): TextTest {
  const tokens = tokenise(pattern)
  return text => resume(tokens, text, () => new GlobMatch(tokens, text)).matches
}

const anyRun = -1
const anyOne = -2

function tokenise(pattern: string): Int32Array {
  const tokens: number[] = []
  for (let at = 0; at < pattern.length; at++) {
    const char = pattern[at]
    if (char === '*' && tokens.at(-1) === anyRun) continue
    if (char === '*') tokens.push(anyRun)
    else if (char === '?') tokens.push(anyOne)
    else {
      if (char === '\\' && at + 1 < pattern.length) at++
      tokens.push(pattern.charCodeAt(at))
    }
  }
  return Int32Array.from(tokens)
}

/** Goes back to the last star only: at most text length times pattern length steps. */
class GlobMatch implements Work {
  matches = false
  readonly #tokens: Int32Array
  readonly #text: string
  #token = 0
  #at = 0
  #starToken = -1
  #starAt = 0

  constructor(tokens: Int32Array, text: string) {
    this.#tokens = tokens
    this.#text = text
  }

  advance(budget: Budget): boolean {
    const { length } = this.#text
    for (; this.#at < length; budget.left--) {
      if (budget.left <= 0) return false
      if (!this.#step()) return true
    }
    const rest = this.#tokens.subarray(this.#token)
    this.matches = rest.every(token => token === anyRun)
    return true
  }

  /** False when the text can no longer match. */
  #step(): boolean {
    const wanted = this.#tokens[this.#token]
    if (wanted === anyRun) {
      this.#starToken = this.#token++
      this.#starAt = this.#at
    } else if (wanted === anyOne || wanted === this.#text.charCodeAt(this.#at)) {
      this.#token++
      this.#at++
    } else if (this.#starToken >= 0) {
      this.#token = this.#starToken + 1
      this.#at = ++this.#starAt
    } else return false
    return true
  }
}

type Segment = { readonly any: 'one' | 'many' } | { readonly text: string } | { readonly holds: TextTest }

/**
 * `*` within a segment, `**` any number of segments, `{id}` one segment, `{id:int}` one of a class. A string is what is
 * wrong with it.
 */
export function compilePathPattern(pattern: string): TextTest | string {
  const shown = JSON.stringify(pattern)
  if (!pattern.startsWith('/') && pattern !== '**') return `a path pattern must begin with a slash: ${shown}`
  const unknown = unknownClass(pattern)
  if (unknown !== undefined) return `${unknown} in ${shown}`
  const segments = (pattern === '**' ? '/**' : pattern).slice(1).split('/').map(parseSegment)
  return path => matchSegments(segments, path.slice(1).split('/'))
}

function unknownClass(pattern: string): string | undefined {
  const names = pattern.split('/').flatMap(segment => classNameOf(segment) ?? [])
  const unknown = names.find(name => segmentClass(name) === undefined)
  if (unknown === undefined) return undefined
  const known = segmentClasses.map(({ name }) => name)
  return `unknown class ${JSON.stringify(unknown)} of a segment${didYouMean(unknown, known)}; it must be one of ${known.join(', ')}`
}

/** `int` of the segment `{id:int}` of a pattern. */
export function classNameOf(segment: string): string | undefined {
  return /^\{[^{}:]*:([^{}]*)\}$/.exec(segment)?.[1]
}

function parseSegment(text: string): Segment {
  if (text === '**') return { any: 'many' }
  const name = classNameOf(text)
  const typed = name === undefined ? undefined : segmentClass(name)
  if (typed !== undefined) return typed
  if (isParameter(text)) return { any: 'one' }
  return /[*?\\]/.test(text) ? { holds: compileGlob(text.replaceAll('?', '\\?')) } : { text }
}

/** `{id}`, `{id:int}`. */
function isParameter(segment: string): boolean {
  return /^\{[^{}]*\}$/.test(segment)
}

/** Same walk as for globs, over segments. `**` also matches no segment at all: `/a/**` holds for `/a`. */
function matchSegments(segments: readonly Segment[], path: readonly string[]): boolean {
  let want = 0
  let at = 0
  let starWant = -1
  let starAt = 0
  while (at < path.length) {
    const segment = segments[want]
    if (segment !== undefined && 'any' in segment && segment.any === 'many') {
      starWant = want++
      starAt = at
    } else if (segment !== undefined && matchSegment(segment, path[at]!)) {
      want++
      at++
    } else if (starWant >= 0) {
      want = starWant + 1
      at = ++starAt
    } else return false
  }
  while (want < segments.length && isMany(segments[want]!)) want++
  return want === segments.length
}

function isMany(segment: Segment): boolean {
  return 'any' in segment && segment.any === 'many'
}

function matchSegment(segment: Segment, text: string): boolean {
  if ('text' in segment) return segment.text === text
  return 'holds' in segment ? segment.holds(text) : text !== ''
}

/** Whether every path of one pattern is one of another. `false` means "not proved". */
export function patternWithin(inner: string, outer: string): boolean {
  const left = inner.split('/')
  const right = outer === '**' ? ['', '**'] : outer.split('/')
  for (const [place, segment] of right.entries()) {
    if (segment === '**' && place === right.length - 1) return left.length >= place
    const other = left[place]
    if (segment === '**' || other === undefined || !segmentWithin(other, segment)) return false
  }
  return left.length === right.length
}

function segmentWithin(inner: string, outer: string): boolean {
  if (inner === outer) return true
  if (inner === '**') return false
  const name = classNameOf(outer)
  if (name !== undefined && name === classNameOf(inner)) return true
  if (name === undefined && isParameter(outer)) return inner !== '' && !/^\*+$/.test(inner)
  if (outer === '*') return true
  return !isParameter(inner) && !/[*\\]/.test(inner) && matchSegment(parseSegment(outer), inner)
}

/** The literal path up to the first segment with a wildcard: `/v1/refunds` for `/v1/refunds/**`. */
export function literalPrefix(pattern: string): string {
  const segments = pattern.split('/')
  const wild = segments.findIndex(segment => /[*{\\]/.test(segment))
  return wild < 0 ? pattern : segments.slice(0, wild).join('/')
}
