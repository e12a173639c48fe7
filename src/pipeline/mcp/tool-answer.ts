/** Answers of MCP servers that list tools, on their way to the agent. Everything else of an event stream is not delayed. */

import { Gathered } from '../../base/gathered.ts'
import { type Refusal, refuse } from '../../errors.ts'
import { fieldValues } from '../../http/headers.ts'
import type { ResponseHead } from '../../upstream/handler.ts'
import type { Exchange, Sendable } from '../exchange.ts'
import type { Parts } from '../parts.ts'
import { asksForMetadata, onVirtualHost } from '../resource-metadata.ts'
import { isOver } from '../rights.ts'
import { dataOf, EventSplitter, linesOf, type Piece, withData } from './event-splitter.ts'
import { asksForList, isFromMcp, readRpcCall, rpcError } from './json-rpc.ts'
import { longestList, readToolList } from './tool-list.ts'

/** Where the answer goes. */
export interface Output {
  /** Writes the head: these fields, and those of the answer that do not describe its bytes. */
  writeHead(more: readonly string[]): void
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

/**
 * Which answers of a request are looked at: `list` asks for the tools, `stream` may carry their list as well, `metadata`
 * asks for that of a virtual host.
 */
type Asks = Exchange['asks']

/** Says what a request asks for. Call it just before the request is sent. */
export function asksForTools(exchange: Sendable, { config }: Parts): Asks {
  const { req, method, body, fields } = exchange
  if (asksForMetadata(exchange, method)) return 'metadata'
  if (method === 'GET' && !fields.mcpStream) return undefined
  const { FilterTools, NoteToolChanges } = config.Mcp
  if (!FilterTools && !NoteToolChanges) return undefined
  // Servers may answer clients that do not send the header fields of MCP.
  if (method === 'POST' && body !== undefined && asksForList(body)) return 'list'
  return fields.mcpStream || isFromMcp(method, req.rawHeaders) ? 'stream' : undefined
}

/** How an answer is read: as a whole, by its events, or not at all. A list that cannot be read is refused. */
export function readingOf(asks: Asks, { status, fields, contentLength = 0 }: ResponseHead): Reading | Refusal {
  if (asks === undefined || status < 200 || status > 299 || status === 202 || status === 204) return undefined
  const isStream = fieldValues(fields, 'content-type').join().toLowerCase().startsWith('text/event-stream')
  if ((asks === 'stream' && !isStream) || (asks === 'metadata' && isStream)) return undefined
  const coding = fieldValues(fields, 'content-encoding').join().toLowerCase()
  if (coding !== '' && coding !== 'identity') return asks === 'list' ? unreadable : undefined
  if (isStream) return 'events'
  if (contentLength <= longestList) return 'whole'
  return asks === 'metadata' ? undefined : unreadable
}

export type Reading = 'whole' | 'events' | undefined

/** Fields that describe the bytes of a body. */
const ofBytes = new Set([
  ...['content-length', 'etag', 'last-modified', 'accept-ranges'],
  ...['content-md5', 'digest', 'content-digest', 'repr-digest'],
])

/** The fields of an answer whose body may change. */
export function withoutBodyFields(fields: readonly string[]): string[] {
  return fields.filter((_, i) => !ofBytes.has(fields[i - (i % 2)]!.toLowerCase()))
}

/** Reads an answer before the agent gets it. */
export function openToolAnswer(reading: 'whole' | 'events', exchange: Sendable, out: Output, parts: Parts): ToolAnswer {
  return reading === 'whole' ? new WholeAnswer(exchange, out, parts) : new EventAnswer(exchange, out, parts)
}

/** An answer that is one JSON document. It is held until all of it was read. */
class WholeAnswer implements ToolAnswer {
  readonly #exchange: Sendable
  readonly #parts: Parts
  readonly #out: Output
  readonly #whole = new Gathered()
  #isRefused = false

  constructor(exchange: Sendable, out: Output, parts: Parts) {
    this.#exchange = exchange
    this.#parts = parts
    this.#out = out
  }

  take(chunk: Buffer): void {
    if (this.#isRefused) return
    const full = holdAnswer(this.#exchange, chunk.length, this.#parts)
    if (full === undefined && this.#whole.size + chunk.length <= longestList) this.#whole.add(chunk)
    else this.#refuse(full ?? unreadable)
  }

  end(): void {
    if (!this.#isRefused) void this.#deliver()
  }

  async #deliver(): Promise<void> {
    const bytes = await this.#read(this.#whole.take())
    if (isOver(this.#exchange)) return
    if (bytes === undefined) return this.#refuse(unreadable)
    this.#out.writeHead(['Content-Length', String(bytes.length)])
    this.#out.send(bytes)
    this.#out.end()
  }

  async #read(whole: Buffer): Promise<Buffer | undefined> {
    if (this.#exchange.asks === 'metadata') return onVirtualHost(whole, this.#exchange, this.#parts.links)
    return (await readToolList(whole, this.#exchange, this.#parts))?.bytes
  }

  #refuse(refusal: Refusal): void {
    this.#isRefused = true
    this.#whole.take()
    this.#out.fail(refusal)
  }
}

/** Events that are shorter than this one have no list, bytes. */
const shortestList = 'data:{"result":{"tools":[]}}'.length

/** An answer in events. Events that cannot contain a list are passed on as they arrive. */
class EventAnswer implements ToolAnswer {
  readonly #exchange: Sendable
  readonly #parts: Parts
  readonly #out: Output
  readonly #isAsked: boolean
  readonly #splitter = new EventSplitter(shortestList)
  readonly #waiting: Piece[] = []
  #isWorking = false
  #hasEnded = false
  /** Bytes of the event that has not ended that are counted as held. */
  #held = 0
  /** The event is too long to read, and is passed on. */
  #isPassing = false
  #isOver = false

  constructor(exchange: Sendable, out: Output, parts: Parts) {
    this.#exchange = exchange
    this.#parts = parts
    this.#out = out
    this.#isAsked = exchange.asks === 'list'
    out.writeHead([])
  }

  take(chunk: Buffer): void {
    if (this.#isOver) return
    for (const piece of this.#splitter.push(chunk)) {
      if (this.#isPassing || (!this.#isWorking && !this.#mayList(piece))) this.#out.send(piece.bytes)
      else this.#waiting.push(piece)
      this.#isPassing = false
    }
    if (this.#splitter.size > longestList || this.#isPassing) this.#passLong()
    if (this.#splitter.size !== this.#held) this.#hold(this.#splitter.size)
    if (this.#waiting.length > 0 && !this.#isWorking) void this.#work()
  }

  end(): void {
    const rest = this.#splitter.rest()
    if (this.#isPassing) this.#out.send(rest.bytes)
    else if (rest.bytes.length > 0) this.#waiting.push(rest)
    this.#hasEnded = true
    if (!this.#isWorking) void this.#work()
  }

  /** Whether an event may hold a list. A name can be written with escapes. */
  #mayList({ bytes, isShort }: Piece): boolean {
    if (isShort) return false
    return this.#isAsked ? bytes.includes('data') : bytes.includes('"tools"') || bytes.includes('\\u')
  }

  #hold(bytes: number): void {
    const full = holdAnswer(this.#exchange, bytes - this.#held, this.#parts)
    if (full === undefined) this.#held = bytes
    else this.#fail(full)
  }

  /** Passes on an event that is too long for a list: results of tools can be longer. */
  #passLong(): void {
    const part = this.#splitter.rest()
    if (!this.#isPassing && (this.#isAsked || this.#isWorking || this.#mayList(part))) this.#fail()
    else {
      this.#isPassing = true
      this.#out.send(part.bytes)
    }
  }

  async #work(): Promise<void> {
    this.#isWorking = true
    this.#out.pause()
    for (let piece = this.#waiting.shift(); piece !== undefined; piece = this.#waiting.shift()) {
      const shown = this.#mayList(piece) ? await this.#read(piece.bytes) : piece.bytes
      if (this.#isOver || isOver(this.#exchange)) return
      if (shown === undefined) return this.#fail()
      this.#out.send(shown)
    }
    this.#isWorking = false
    if (this.#hasEnded) this.#out.end()
    else this.#out.resume()
  }

  /** Undefined when it cannot be passed on. */
  async #read(event: Buffer): Promise<Buffer | undefined> {
    const lines = linesOf(event.toString())
    if (lines === undefined) return undefined
    const data = dataOf(lines)
    // An empty event opens the stream (MCP 2025-11-25, "Sending Messages").
    if (data === undefined || data.trim() === '') return event
    const list = await readToolList(Buffer.from(data), this.#exchange, this.#parts)
    if (list !== undefined) return list.isChanged ? Buffer.from(withData(lines, list.bytes.toString())) : event
    const [id] = this.#isAsked ? (readRpcCall(this.#exchange.body ?? Buffer.alloc(0))?.ids ?? []) : []
    if (id === undefined) return undefined
    return Buffer.from(withData(lines, JSON.stringify(rpcError(id, unreadable, this.#exchange.requestId))))
  }

  #fail(refusal = unreadable): void {
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
