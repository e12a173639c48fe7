import type { Sendable } from '../exchange.ts'
import { type EventPiece, EventSplitter, readEvent, withData } from '../mcp/event-splitter.ts'
import { readRpcCall, rpcError } from '../mcp/json-rpc.ts'
import type { ReaderParts } from '../parts.ts'
import { holdAnswer, longestDocument, unreadable } from './held-document.ts'
import type { AnswerOutput, Rewriter } from './interest.ts'
import { mayHoldList, searchForEndpoint, searchForList } from './list-name.ts'
import type { TextSearch } from './text-search.ts'
import { readToolList } from './tool-list.ts'

/** Shorter events cannot be messages, bytes. Each longer event is read by itself. */
const shortestMessage = 'data:{"result":{"tools":[]}}'.length

interface EventTerms {
  /** The request asks for the list. */
  readonly isAsked: boolean
  /** The stream is one of MCP only if it names an endpoint. */
  readonly needsEndpoint: boolean
}

/** An answer in events. Events that cannot contain a list are passed on as they arrive. */
export class ToolEvents implements Rewriter {
  readonly #exchange: Sendable
  readonly #parts: ReaderParts
  readonly #out: AnswerOutput
  readonly #isAsked: boolean
  /** Until a stream names an endpoint, it may belong to another API and is not read. */
  #endpoint: TextSearch | undefined
  readonly #splitter = new EventSplitter(shortestMessage)
  readonly #waiting: EventPiece[] = []
  #isWorking = false
  #hasEnded = false
  /** Bytes of the event that has not ended that are counted as held. */
  #held = 0
  /** The event is too long to read, and is passed on. */
  #passing: TextSearch | undefined
  #isOver = false

  constructor(exchange: Sendable, { isAsked, needsEndpoint }: EventTerms, out: AnswerOutput, parts: ReaderParts) {
    this.#exchange = exchange
    this.#parts = parts
    this.#out = out
    this.#isAsked = isAsked
    this.#endpoint = needsEndpoint ? searchForEndpoint() : undefined
    out.writeHead('unknown')
  }

  take(chunk: Buffer): void {
    if (this.#isOver) return
    for (const piece of this.#splitter.push(chunk)) {
      if (this.#isOver) return
      if (this.#passing !== undefined) this.#passPart(piece.bytes, this.#passing)
      else if (this.#isWorking || this.#waiting.length > 0 || this.#mayList(piece)) this.#waiting.push(piece)
      else this.#pass(piece.bytes)
      this.#passing = undefined
    }
    if (this.#isOver) return
    if (this.#splitter.size > longestDocument || this.#passing !== undefined) this.#passLong()
    if (this.#splitter.size !== this.#held) this.#hold(this.#splitter.size)
    if (this.#waiting.length > 0 && !this.#isWorking) void this.#work()
  }

  end(): void {
    if (this.#isOver) return
    const rest = this.#splitter.rest()
    if (this.#passing !== undefined) this.#passPart(rest.bytes, this.#passing)
    else if (rest.bytes.length > 0) this.#waiting.push(rest)
    this.#hasEnded = true
    if (!this.#isWorking && !this.#isOver) void this.#work()
  }

  #mayList({ bytes }: EventPiece): boolean {
    return this.#endpoint === undefined && mayHoldList(bytes)
  }

  #pass(bytes: Buffer): void {
    if (this.#endpoint?.push(bytes) === true) this.#endpoint = undefined
    this.#out.write(bytes)
  }

  #hold(bytes: number): void {
    const full = holdAnswer(this.#exchange, bytes - this.#held, this.#parts)
    if (full === undefined) this.#held = bytes
    else this.#fail(full)
  }

  /** Passes on an event that is too long for a list: results of tools can be longer. */
  #passLong(): void {
    const part = this.#splitter.rest()
    if (this.#passing === undefined && (this.#isAsked || this.#isWorking)) {
      this.#fail()
      return
    }
    this.#passing ??= searchForList()
    this.#passPart(part.bytes, this.#passing)
  }

  #passPart(part: Buffer, search: TextSearch): void {
    if (search.push(part) && this.#endpoint === undefined) this.#fail()
    else this.#pass(part)
  }

  async #work(): Promise<void> {
    this.#isWorking = true
    this.#out.pause()
    for (let piece = this.#waiting.shift(); piece !== undefined; piece = this.#waiting.shift()) {
      const shown = this.#mayList(piece) ? await this.#read(piece) : piece.bytes
      if (this.#isOver || this.#exchange.isOver) return
      if (shown === undefined) return this.#fail()
      this.#pass(shown)
    }
    this.#isWorking = false
    if (this.#hasEnded) this.#out.finish()
    else this.#out.resume()
  }

  /** Undefined when the event must not be passed on. */
  async #read({ bytes, isShort }: EventPiece): Promise<Buffer | undefined> {
    const event = isShort ? undefined : readEvent(bytes.toString())
    if (event === undefined) return undefined
    const list = await readToolList(Buffer.from(event.data), this.#exchange, this.#parts)
    if (list !== undefined) return list.isChanged ? Buffer.from(withData(event, list.bytes.toString())) : bytes
    const [id] = this.#isAsked ? (readRpcCall(this.#exchange.body ?? Buffer.alloc(0))?.ids ?? []) : []
    if (id === undefined) return undefined
    return Buffer.from(withData(event, JSON.stringify(rpcError(id, unreadable, this.#exchange.requestId))))
  }

  #fail(refusal = unreadable): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#waiting.length = 0
    this.#splitter.rest()
    this.#out.refuse(refusal)
  }
}
