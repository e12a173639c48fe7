/** Answers of MCP servers that may list tools, on their way to the agent. Everything else of an event stream is not delayed. */

import { Gathered } from '../../base/gathered.ts'
import { type Refusal, refuse } from '../../errors.ts'
import type { Sendable } from '../exchange.ts'
import type { Parts } from '../parts.ts'
import { mayBeMetadata, onVirtualHost } from '../resource-metadata.ts'
import { mustBeList } from './asks.ts'
import { EventSplitter, type Piece, readEvent, withData } from './event-splitter.ts'
import { readRpcCall, rpcError } from './json-rpc.ts'
import { mayHoldList, searchForEndpoint, searchForList } from './list-name.ts'
import type { TextSearch } from './text-search.ts'
import { longestList, readToolList } from './tool-list.ts'

/** Where the answer goes. */
export interface Output {
  /**
   * Writes the head.
   *
   * @param length of the body as it is now, bytes; `unchanged` leaves every field as it is
   */
  writeHead(length: number | 'unknown' | 'unchanged'): void
  send(bytes: Buffer): void
  end(): void
  /** Ends the exchange, because the answer cannot be passed on. */
  fail(refusal: Refusal): void
  pause(): void
  resume(): void
}

/** Takes the body of an answer in the place of the agent. */
export interface ToolAnswer {
  /** `chunk` is valid during this call alone. */
  take(chunk: Buffer): void
  end(): void
}

const unreadable = refuse('tool_list_unreadable')

/** Fields that describe the bytes of a body. */
const ofBytes = new Set([
  ...['content-length', 'etag', 'last-modified', 'accept-ranges'],
  ...['content-md5', 'digest', 'content-digest', 'repr-digest'],
])

/** The fields of an answer whose body may have changed. */
export function withLength(fields: readonly string[], length: number | 'unknown'): string[] {
  const kept = fields.filter((_, i) => !ofBytes.has(fields[i - (i % 2)]!.toLowerCase()))
  return length === 'unknown' ? kept : [...kept, 'Content-Length', String(length)]
}

/** Reads an answer before the agent gets it. */
export function openToolAnswer(reading: 'whole' | 'events', exchange: Sendable, out: Output, parts: Parts): ToolAnswer {
  return reading === 'whole' ? new WholeAnswer(exchange, out, parts) : new EventAnswer(exchange, out, parts)
}

/** An answer that is one JSON document. It is held until all of it was read; a long result of a tool is passed on. */
class WholeAnswer implements ToolAnswer {
  readonly #exchange: Sendable
  readonly #parts: Parts
  readonly #out: Output
  readonly #isList: boolean
  readonly #whole = new Gathered()
  /** The document is too long to read, and is passed on. */
  #passing: TextSearch | undefined
  #hasHead = false
  #isRefused = false

  constructor(exchange: Sendable, out: Output, parts: Parts) {
    this.#exchange = exchange
    this.#parts = parts
    this.#out = out
    const { asks, upstreamStatus = 0 } = exchange
    this.#isList = asks === 'metadata' || mustBeList(asks, upstreamStatus)
  }

  take(chunk: Buffer): void {
    if (this.#isRefused) return
    if (this.#passing !== undefined) this.#pass(chunk, this.#passing)
    else this.#hold(chunk)
  }

  #hold(chunk: Buffer): void {
    const full = holdAnswer(this.#exchange, chunk.length, this.#parts)
    this.#whole.add(chunk)
    if (full !== undefined) this.#refuse(full)
    else if (this.#whole.size > longestList) this.#passLong()
  }

  #passLong(): void {
    const begun = this.#whole.take()
    if (this.#isList) this.#refuse(unreadable)
    else {
      this.#passing = searchForList()
      holdAnswer(this.#exchange, -begun.length, this.#parts)
      this.#pass(begun, this.#passing)
    }
  }

  end(): void {
    if (this.#isRefused) return
    if (this.#passing !== undefined) this.#out.end()
    else void this.#deliver(this.#whole.take())
  }

  /** Passes on a part of a long document, unless a list is in it. */
  #pass(part: Buffer, search: TextSearch): void {
    if (this.#isWide(part) || search.push(part)) {
      this.#refuse(unreadable)
      return
    }
    if (!this.#hasHead) this.#out.writeHead('unchanged')
    this.#hasHead = true
    this.#out.send(part)
  }

  async #deliver(whole: Buffer): Promise<void> {
    const bytes = await this.#read(whole)
    if (this.#exchange.isOver) return
    if (bytes === undefined) return this.#refuse(unreadable)
    this.#out.writeHead(bytes === whole ? 'unchanged' : bytes.length)
    this.#out.send(bytes)
    this.#out.end()
  }

  async #read(whole: Buffer): Promise<Buffer | undefined> {
    const exchange = this.#exchange
    const isMetadata = exchange.asks === 'metadata'
    if (!isMetadata && this.#isWide(whole)) return undefined
    if (isMetadata || (!this.#isList && !mayHoldList(whole))) {
      return mayBeMetadata(exchange, exchange.method) ? onVirtualHost(whole, exchange, this.#parts.links) : whole
    }
    return (await readToolList(whole, this.#exchange, this.#parts))?.bytes
  }

  /** Whether it is UTF-16, or UTF-32: clients in Python find that out by the zeros in it. */
  #isWide(bytes: Buffer): boolean {
    return this.#exchange.asks === 'client' && bytes.includes(0)
  }

  #refuse(refusal: Refusal): void {
    this.#isRefused = true
    this.#whole.take()
    this.#out.fail(refusal)
  }
}

/** Shorter events are no messages, bytes: each of the others is read by itself. */
const shortestMessage = 'data:{"result":{"tools":[]}}'.length

/** An answer in events. Events that cannot contain a list are passed on as they arrive. */
class EventAnswer implements ToolAnswer {
  readonly #exchange: Sendable
  readonly #parts: Parts
  readonly #out: Output
  readonly #isAsked: boolean
  /** Until a stream names an endpoint, it may be one of another API, which is not read. */
  #endpoint: TextSearch | undefined
  readonly #splitter = new EventSplitter(shortestMessage)
  readonly #waiting: Piece[] = []
  #isWorking = false
  #hasEnded = false
  /** Bytes of the event that has not ended that are counted as held. */
  #held = 0
  /** The event is too long to read, and is passed on. */
  #passing: TextSearch | undefined
  #isOver = false

  constructor(exchange: Sendable, out: Output, parts: Parts) {
    this.#exchange = exchange
    this.#parts = parts
    this.#out = out
    this.#isAsked = exchange.asks === 'list'
    this.#endpoint = exchange.asks === 'events' ? searchForEndpoint() : undefined
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
    if (this.#splitter.size > longestList || this.#passing !== undefined) this.#passLong()
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

  #mayList({ bytes }: Piece): boolean {
    return this.#endpoint === undefined && mayHoldList(bytes)
  }

  #pass(bytes: Buffer): void {
    if (this.#endpoint?.push(bytes) === true) this.#endpoint = undefined
    this.#out.send(bytes)
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
    if (this.#hasEnded) this.#out.end()
    else this.#out.resume()
  }

  /** Undefined when it cannot be passed on. */
  async #read({ bytes, isShort }: Piece): Promise<Buffer | undefined> {
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
    this.#out.fail(refusal)
  }
}

/** Counts bytes of an answer as held for the agent until the exchange ends; a negative number gives bytes back. */
function holdAnswer(exchange: Sendable, bytes: number, { heldBytes, bounds }: Parts): Refusal | undefined {
  if (bytes < 0) {
    // A streamed body gives back all held bytes when it was sent.
    const given = Math.min(exchange.held, -bytes)
    heldBytes.give(exchange.agent.id, given)
    exchange.held -= given
    return undefined
  }
  const bound = heldBytes.take(exchange.agent.id, bytes)
  if (bound === undefined) {
    exchange.held += bytes
    return undefined
  }
  bounds.reached(bound, exchange.agent.id, exchange.requestId)
  return refuse('busy', 'Too many bodies are being held. Wait as Retry-After says.', { headers: ['Retry-After', '1'] })
}
