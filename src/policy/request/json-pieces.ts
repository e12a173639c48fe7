import { isAscii } from 'node:buffer'
import { setMember } from '../../base/json.ts'
import { isRecord } from '../values/path.ts'
import type { Budget, Work } from '../values/work.ts'
import { type ArrayPiece, bytesOf, closingQuote, endOfPart, endOfWord, surveyPiece } from './json-survey.ts'

/** Reads a piece. It throws SyntaxError when the text is not JSON. */
export type ParsePiece = (text: string, escapedNames: boolean) => unknown

/** Deepest nesting that is read; deeper bodies are unreadable. */
const maxDepth = 64
/** Maximum of members of one object: listing the names of 90,000 takes 70 ms, and cannot be divided. */
const maxMembers = 10_000

/**
 * Reads JSON text in pieces, so that long work can be divided: JSON.parse cannot, and takes 100 ms for some texts of
 * 1 MiB. A piece is some neighbouring elements of a list, or members of an object, with the commas between them. Lists,
 * objects and strings that are too long for one piece are read piece by piece themselves.
 *
 * Brackets and commas between the pieces are checked here and the pieces by their parser, so that exactly the texts are
 * read that JSON.parse accepts. All pieces are found before the first is parsed, so that a text of too many values is
 * not parsed at all.
 */
export class PieceReader implements Work {
  value: unknown
  /** Why the text cannot be read. Reading ends there. */
  problem: string | undefined
  /** Whether some number may not fit into a double. */
  mayRound = false
  readonly #bytes: Buffer
  readonly #isAscii: boolean
  readonly #mayEscape: boolean
  readonly #parse: ParsePiece
  readonly #maxValues: number
  readonly #maxSteps: number
  readonly #frames: ContainerFrame[] = []
  /** Actions on the pieces, in order. */
  readonly #jobs: ParseJob[] = []
  #nextJob = 0
  #string: OpenString | undefined
  #at = 0
  #values = 0
  #hasDuplicates = false
  #isRead = false
  /** Whether all pieces were found. */
  #isFound = false

  /**
   * @param bytes valid UTF-8
   * @param maxSteps that a piece takes
   */
  constructor(bytes: Buffer, parse: ParsePiece, maxValues: number, maxSteps = 32_768) {
    this.#bytes = bytes
    this.#isAscii = isAscii(bytes)
    this.#mayEscape = bytes.includes(92)
    this.#parse = parse
    this.#maxValues = maxValues
    this.#maxSteps = maxSteps
  }

  advance(budget: Budget): boolean {
    try {
      while (!this.#isFound && this.problem === undefined) {
        if (budget.left <= 0) return false
        budget.left -= this.#step() >> 2
      }
      for (; this.#nextJob < this.#jobs.length && this.problem === undefined; this.#nextJob++) {
        if (budget.left <= 0) return false
        const { steps, run } = this.#jobs[this.#nextJob]!
        budget.left -= steps
        run()
      }
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error
      this.problem = 'not valid JSON'
    }
    if (this.#hasDuplicates) this.problem ??= 'duplicate keys'
    return true
  }

  /** Finds one piece, or enters or leaves a list or object. Returns the steps that the piece takes. */
  #step(): number {
    if (this.#string !== undefined) return this.#readString(this.#string)
    const frame = this.#frames.at(-1)
    if (frame === undefined && this.#isRead) {
      if (this.#next() !== undefined) throw new SyntaxError('text after the end')
      this.#isFound = true
      return 1
    }
    if (frame?.hasRead === true) {
      if (this.#next() === comma) {
        frame.hasRead = false
        this.#at++
      } else this.#leave(frame)
      return 1
    }
    const piece = surveyPiece(this.#bytes, this.#at, this.#maxSteps, this.#mayEscape)
    this.#count(piece.values, piece.deepest)
    this.mayRound ||= piece.longNumbers
    if (this.problem === undefined) this.#take(frame, piece)
    return piece.steps
  }

  #later(steps: number, run: () => void): void {
    this.#jobs.push({ steps, run })
  }

  /** Takes a piece, or enters the element or member that is too long for one. */
  #take(frame: ContainerFrame | undefined, piece: ArrayPiece): void {
    if (frame === undefined) {
      this.#isFound = piece.end === this.#bytes.length
      if (this.#isFound) this.#later(costOf(piece), () => this.#readWhole(piece))
      else this.#open(undefined, value => this.#attach(value))
    } else if (piece.end >= 0) {
      const from = this.#at
      this.#at = piece.end
      frame.hasRead = true
      this.#later(costOf(piece), () => this.#read(frame, this.#decode(from, piece.end), piece))
    } else if (Array.isArray(frame.container)) {
      const { container } = frame
      this.#open(frame, value => container.push(value))
    } else this.#openMember(frame, frame.container)
  }

  #count(values: number, deepest: number): void {
    this.#values += values
    if (this.#frames.length + deepest > maxDepth) this.problem = `nested deeper than ${maxDepth}`
    else if (this.#values > this.#maxValues) this.problem = `of more than ${this.#maxValues} values`
  }

  #attach(value: unknown): void {
    this.value = value
  }

  #readWhole(piece: ArrayPiece): void {
    this.value = this.#parse(this.#decode(0, this.#bytes.length), piece.escapedNames)
    this.#hasDuplicates = piece.members > 0 && countMembers(this.value) !== piece.members
  }

  /** Reads elements or members. */
  #read(frame: ContainerFrame, text: string, { members, escapedNames }: ArrayPiece): void {
    const { container } = frame
    if (Array.isArray(container)) {
      const elements = this.#parse(`[${text}]`, escapedNames)
      if (!Array.isArray(elements) || elements.length === 0) throw new SyntaxError('no element')
      for (let at = 0; at < elements.length; at++) container.push(elements[at])
      if (members > 0) this.#hasDuplicates ||= countMembers(elements) !== members
      return
    }
    const object = this.#parse(`{${text}}`, escapedNames)
    if (!isRecord(object)) throw new SyntaxError('no object')
    const names = Object.keys(object)
    if (names.length === 0) throw new SyntaxError('no member')
    if (members !== names.length) this.#hasDuplicates ||= countMembers(object) !== members
    for (const name of names) this.#addMember(frame, container, name, object[name])
  }

  #openMember(frame: ContainerFrame, object: Record<string, unknown>): void {
    if (this.#next() !== quote) throw new SyntaxError('no name')
    const name = this.#openString(() => {
      if (this.#next() !== colon) throw new SyntaxError('no colon')
      this.#at++
      this.#open(frame, value => this.#addMember(frame, object, name.value, value))
    })
  }

  #addMember(frame: ContainerFrame, object: Record<string, unknown>, name: string, value: unknown): void {
    if (Object.hasOwn(object, name)) this.#hasDuplicates = true
    setMember(object, name, value)
    if (++frame.members > maxMembers) this.problem = `of more than ${maxMembers} members in one object`
  }

  /** Begins to read the value that comes next by itself. */
  #open(frame: ContainerFrame | undefined, attach: (value: unknown) => void): void {
    if (frame === undefined) this.#isRead = true
    else frame.hasRead = true
    this.#count(1, 0)
    const code = this.#next()
    if (code === quote) {
      const string = this.#openString(() => this.#later(1, () => attach(string.value)))
    } else if (code === openList || code === openObject) this.#push(code, attach)
    else {
      // Its name was too long to survey it.
      this.mayRound = true
      const word = this.#decode(this.#at, Math.abs(endOfWord(this.#bytes, this.#at)))
      this.#at += word.length
      this.#later(1, () => attach(this.#parse(word, false)))
    }
  }

  #push(code: number, attach: (value: unknown) => void): void {
    const container = code === openList ? [] : {}
    this.#later(1, () => attach(container))
    this.#at++
    const isEmpty = this.#next() === (code === openList ? closeList : closeObject)
    this.#frames.push({ container, hasRead: isEmpty, members: 0 })
  }

  #leave({ container }: ContainerFrame): void {
    if (this.#next() !== (Array.isArray(container) ? closeList : closeObject)) throw new SyntaxError('not closed')
    this.#at++
    this.#frames.pop()
  }

  /** @param goOn where the string ends; its value is known later */
  #openString(goOn: () => void): OpenString {
    this.#at++
    this.#string = { value: '', goOn }
    return this.#string
  }

  /** Finds a part of a long string, up to its end or to a place that is in no escape. */
  #readString(string: OpenString): number {
    const from = this.#at
    const limit = from + bytesOf(this.#maxSteps)
    const end = closingQuote(this.#bytes, from, limit)
    if (end < 0 && limit >= this.#bytes.length) throw new SyntaxError('no end of a string')
    const to = end < 0 ? endOfPart(this.#bytes, from, limit) : end
    const steps = (to - from) >> 2
    this.#later(steps, () => {
      string.value += JSON.parse(`"${this.#decode(from, to)}"`)
    })
    this.#at = to
    if (end >= 0) {
      this.#at++
      this.#string = undefined
      string.goOn()
    }
    return steps
  }

  /** The next byte that is no white space; undefined at the end. */
  #next(): number | undefined {
    let code = this.#bytes[this.#at]
    while (code === 32 || code === 10 || code === 13 || code === 9) code = this.#bytes[++this.#at]
    return code
  }

  #decode(from: number, to: number): string {
    return this.#bytes.toString(this.#isAscii ? 'latin1' : 'utf8', from, to)
  }
}

/** A list or object that is being read. */
interface ContainerFrame {
  readonly container: unknown[] | Record<string, unknown>
  /** Whether a comma or the end comes next. */
  hasRead: boolean
  members: number
}

interface OpenString {
  /** As far as its parts were read. */
  value: string
  readonly goOn: () => void
}

interface ParseJob {
  readonly steps: number
  readonly run: () => void
}

/** Names with escapes are slow to read. */
const costOf = ({ steps, escapedNames }: ArrayPiece): number => (escapedNames ? steps * 3 : steps)

/** Members of all objects in the tree, whose depth was checked before. Of equal names one is counted. */
function countMembers(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0
  let count = 0
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length; index++) {
      const element: unknown = value[index]
      if (typeof element === 'object' && element !== null) count += countMembers(element)
    }
    return count
  }
  // Names first: Object.values takes twice as long for an object of many members.
  const names = Object.keys(value)
  count = names.length
  for (const name of names) {
    // The names are those of `value`, which comes from JSON.
    const member = (value as Record<string, unknown>)[name]
    if (typeof member === 'object' && member !== null) count += countMembers(member)
  }
  return count
}

const quote = 34
const comma = 44
const colon = 58
const openList = 91
const closeList = 93
const openObject = 123
const closeObject = 125
