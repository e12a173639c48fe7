import { type Budget, stepsOfText, type Work } from '../values/work.ts'
import { endOfString, setMember } from './exact-json.ts'

/**
 * Reads JSON text in pieces, so that long work can be divided: JSON.parse cannot, and takes 100 ms for some texts of
 * 1 MiB. A piece is some neighbouring elements of a list, or members of an object, with the commas between them. Lists
 * and objects that are too long for one piece are read piece by piece themselves.
 *
 * Brackets and commas between the pieces are checked here and the pieces by their parser, so that exactly the texts are
 * read that JSON.parse accepts.
 */
export class PieceReader implements Work {
  /** Names of members that were read twice count once. */
  members = 0
  value: unknown
  isInvalid = false
  /** Whether some object has too many members; reading ends there. */
  hasLongObject = false
  readonly #text: string
  readonly #parse: (text: string) => unknown
  readonly #mostSteps: number
  readonly #frames: Frame[] = []
  #at = 0
  #isDone = false

  /**
   * @param parse reads a piece; throws when it is no JSON
   * @param mostSteps that a piece takes
   */
  constructor(text: string, parse: (text: string) => unknown, mostSteps = 32_768) {
    this.#text = text
    this.#parse = parse
    this.#mostSteps = mostSteps
  }

  advance(budget: Budget): boolean {
    try {
      while (!this.#isDone && !this.hasLongObject) {
        if (budget.left <= 0) return false
        budget.left -= this.#step()
      }
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error
      this.isInvalid = true
    }
    return true
  }

  /** Reads one piece, or enters or leaves a list or object. Returns the steps it took. */
  #step(): number {
    const frame = this.#frames.at(-1)
    if (frame === undefined) return this.#begin()
    if (frame.hasRead) {
      if (this.#next() === comma) {
        frame.hasRead = false
        this.#at++
      } else this.#leave(frame)
      return 1
    }
    const piece = surveyPiece(this.#text, this.#at, this.#mostSteps)
    if (piece.end < 0) this.#enter(frame)
    else this.#read(frame, piece)
    return piece.steps
  }

  #begin(): number {
    const piece = surveyPiece(this.#text, 0, this.#mostSteps)
    if (piece.end === this.#text.length) {
      this.value = this.#parse(this.#text)
      this.members += countMembers(this.value)
      this.#isDone = true
    } else {
      const code = this.#next()
      this.#push(code, value => {
        this.value = value
      })
    }
    return piece.steps
  }

  /** Reads the elements or members before `piece.end`. */
  #read(frame: Frame, { end }: Piece): void {
    const { container } = frame
    const text = this.#text.slice(this.#at, end)
    this.#at = end
    frame.hasRead = true
    if (Array.isArray(container)) {
      const elements = this.#parse(`[${text}]`) as unknown[]
      if (elements.length === 0) throw new SyntaxError('no element')
      for (const element of elements) container.push(element)
      this.members += countMembers(elements)
      return
    }
    const members = this.#parse(`{${text}}`) as Record<string, unknown>
    const names = Object.keys(members)
    if (names.length === 0) throw new SyntaxError('no member')
    this.members += countMembers(members) - names.length
    for (const name of names) this.#addMember(container, name, members[name])
    frame.members += names.length
    this.hasLongObject ||= frame.members > maxMembers
  }

  /** Enters the list or object that the next element or member is. */
  #enter({ container }: Frame): void {
    if (Array.isArray(container)) {
      this.#push(this.#next(), value => container.push(value))
      return
    }
    if (this.#next() !== quote) throw new SyntaxError('no name')
    const start = this.#at
    this.#at = endOfString(this.#text, start) + 1
    const name = JSON.parse(this.#text.slice(start, this.#at)) as string
    if (this.#next() !== colon) throw new SyntaxError('no colon')
    this.#at++
    this.#push(this.#next(), value => this.#addMember(container, name, value))
  }

  #addMember(object: Record<string, unknown>, name: string, value: unknown): void {
    if (Object.hasOwn(object, name)) return
    this.members++
    setMember(object, name, value)
  }

  #push(code: number, attach: (value: unknown) => void): void {
    if (code !== openList && code !== openObject) throw new SyntaxError('neither list nor object')
    const container = code === openList ? [] : {}
    attach(container)
    this.#at++
    const isEmpty = this.#next() === (code === openList ? closeList : closeObject)
    this.#frames.push({ container, hasRead: isEmpty, members: 0 })
  }

  #leave({ container }: Frame): void {
    const wanted = Array.isArray(container) ? closeList : closeObject
    if (this.#next() !== wanted) throw new SyntaxError('not closed')
    this.#at++
    this.#frames.pop()
    const above = this.#frames.at(-1)
    if (above !== undefined) {
      above.hasRead = true
      return
    }
    if (!Number.isNaN(this.#next())) throw new SyntaxError('text after the end')
    this.#isDone = true
  }

  /** The next character that is no white space; NaN at the end. */
  #next(): number {
    let code = this.#text.charCodeAt(this.#at)
    while (code === 32 || code === 10 || code === 13 || code === 9) code = this.#text.charCodeAt(++this.#at)
    return code
  }
}

/** Most members of one object: listing the names of 90,000 takes 70 ms, and cannot be divided. */
export const maxMembers = 10_000

/** A list or object that is being read. */
interface Frame {
  readonly container: unknown[] | Record<string, unknown>
  /** Whether a comma or the end comes next. */
  hasRead: boolean
  /** Members of an object that were read. */
  members: number
}

/** Members of all objects in the tree, whose depth was checked before. */
function countMembers(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0
  if (Array.isArray(value)) {
    let count = 0
    for (let index = 0; index < value.length; index++) count += countMembers(value[index])
    return count
  }
  // Names first: Object.values takes twice as long for an object of many members.
  const names = Object.keys(value)
  let count = names.length
  for (const name of names) count += countMembers((value as Record<string, unknown>)[name])
  return count
}

const quote = 34
const comma = 44
const colon = 58
const openList = 91
const closeList = 93
const openObject = 123
const closeObject = 125

/** Steps that JSON.parse takes at most, by the character outside of strings: names are a string and a colon. */
const stepsOf = new Uint8Array(128)
for (const [characters, steps] of Object.entries({ '"': 24, ':': 16, '{[': 16, '-0123456789': 8, tfn: 8, '}],': 1 })) {
  for (const character of characters) stepsOf[character.charCodeAt(0)] = steps
}

interface Piece {
  /** The comma or bracket behind it, or the end of the text; -1 when the first element is too long for one piece. */
  readonly end: number
  /** What finding and reading it takes. */
  readonly steps: number
}

/** The longest piece from `from` on that takes no more than `mostSteps`. */
function surveyPiece(text: string, from: number, mostSteps: number): Piece {
  let depth = 0
  let steps = 1
  let end = -1
  for (let at = from; at < text.length; at++) {
    const code = text.charCodeAt(at)
    const taken = stepsOf[code]
    if (taken === undefined || taken === 0) continue
    steps += taken
    if (code === quote) {
      const last = endOfString(text, at)
      steps += stepsOfText(last - at)
      at = last
    } else if (taken === 1) {
      if (depth === 0) end = at
      if (code === comma) continue
      if (--depth < 0) return { end, steps }
    } else if (code === openList || code === openObject) depth++
    else if (taken === 8) at = endOfWord(text, at) - 1
    if (steps > mostSteps && (end >= 0 || depth > 0)) return { end, steps }
  }
  return { end: text.length, steps }
}

/** The end of a number or word. */
function endOfWord(text: string, from: number): number {
  let at = from + 1
  while (isWord(text.charCodeAt(at))) at++
  return at
}

function isWord(code: number): boolean {
  return (
    (code >= 48 && code <= 57) ||
    (code >= 97 && code <= 122) ||
    code === 46 ||
    code === 45 ||
    code === 43 ||
    code === 69
  )
}
