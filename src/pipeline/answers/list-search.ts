/** Finds requests for the tools of an MCP server by their bodies. */
import { isUtf8 } from 'node:buffer'
import { JsonDocument, JsonReading } from '../../policy/request/json.ts'
import { membersLike } from '../../policy/request/names.ts'
import { type Budget, stepsOfText, type Work } from '../../policy/values/work.ts'
import { mayList } from './list-bytes.ts'
import { jsonString, TextSearch } from './text-search.ts'

const method = 'tools/list'
/** Each character may be written with an escape. PHP does so with the slash. */
const listing = jsonString(method)
/** Bytes of its longest spelling. */
const longestListing = 2 + 6 * method.length

/** How an object or a list begins. Some servers skip a byte order mark. */
const jsonStart = /^(?:\xef\xbb\xbf)?[ \t\r\n]*[[{]/
const onlySpace = /^(?:\xef\xbb\xbf)?[ \t\r\n]*$/

/** Leading white space that is skipped, bytes. */
const longestSpace = 1_024
const pieceBytes = 65_536
/** Bytes that are passed over in one step. */
const bytesPerStep = 128
/** Longer bodies, and bodies of more values, are not parsed. Servers may accept them, so their text is searched instead. */
const longestParsed = 1_048_576
const maxValues = 10_000

/** Searches a body that streams for the name of the method. */
export class ListSearch {
  readonly #search = new TextSearch(listing, longestListing, mayList)
  #isJson: boolean | undefined

  /** Whether the name ends in this piece. */
  finds(piece: Buffer): boolean {
    this.#isJson ??= beginsAsJson(piece)
    return this.#isJson !== false && this.#search.push(piece)
  }
}

/** Undefined when the piece is long and has only white space. */
function beginsAsJson(piece: Buffer): boolean | undefined {
  const text = piece.toString('latin1', 0, longestSpace)
  if (jsonStart.test(text)) return true
  return onlySpace.test(text) ? undefined : false
}

/**
 * Whether a message in a body asks for the tools of a server. A body that cannot be read, because it is long or ambiguous,
 * asks for them when it is JSON and contains the name of the method: its server may read it.
 */
export class ListQuestion implements Work {
  asks = false
  readonly #body: Buffer
  #reading: JsonReading | undefined
  #at = 0

  constructor(body: Buffer) {
    this.#body = body
  }

  advance(budget: Budget): boolean {
    while (this.#reading === undefined) {
      if (this.#at >= this.#body.length) return true
      if (budget.left <= 0) return false
      // A spelling that begins in this piece may end in the next one.
      const piece = this.#body.subarray(this.#at, this.#at + pieceBytes + longestListing - 1)
      budget.left -= Math.ceil(piece.length / bytesPerStep)
      if (this.#at === 0 && beginsAsJson(piece) === false) return true
      this.#at += pieceBytes
      if (!mayList(piece)) continue
      budget.left -= stepsOfText(piece.length)
      if (!listing.test(piece.toString('latin1'))) continue
      this.asks = true
      if (this.#body.length > longestParsed || !isUtf8(this.#body)) return true
      this.#reading = new JsonReading(this.#body, maxValues)
    }
    if (!this.#reading.advance(budget)) return false
    const { result } = this.#reading
    if (result instanceof JsonDocument) this.asks = holdsQuestion(result.value)
    // Of each value the name is compared once.
    budget.left -= maxValues
    return true
  }
}

function holdsQuestion(value: unknown): boolean {
  const messages: readonly unknown[] = Array.isArray(value) ? value : [value]
  return messages.some(message => membersLike(message, 'method').includes(method))
}
