/** Which answers may list the tools of an MCP server, and how they are read: denied tools are taken out. */
import type { Refusal } from '../../base/refusals.ts'
import { fieldValues } from '../../http/headers.ts'
import type { ResponseHead } from '../../upstream/handler.ts'
import type { Exchange, Sendable } from '../exchange.ts'
import type { ReaderParts } from '../parts.ts'
import { type WorkTurns, workOneTurn } from '../work-turns.ts'
import { acceptsJson, isCoded } from './fields.ts'
import { longestDocument, unreadable } from './held-document.ts'
import type { AnswerOutput, Interest, Rewriter } from './interest.ts'
import { ListQuestion, ListSearch } from './list-search.ts'
import { asksForMetadata } from './metadata.ts'
import type { AnswerReader } from './reader.ts'
import { ToolDocument } from './tool-document.ts'
import { ToolEvents } from './tool-events.ts'

/**
 * Why the answer to a request may hold such a list. `list`: the request asks for it. `client`: it comes from an MCP client,
 * which takes such a list out of the answer to any request. `events`: it asks for a stream, which is one of the older
 * transport of MCP if it names an endpoint.
 */
type Asks = 'list' | 'client' | 'events' | undefined

export const toolReader = (parts: ReaderParts): AnswerReader => ({
  wantsBody: mayAskForTools,
  interestIn(exchange) {
    const asks = asksByHead(exchange)
    if (exchange.method !== 'POST' || !exchange.hasBody) {
      return asks === undefined ? undefined : new ToolInterest(exchange, asks, parts)
    }
    const { body } = exchange
    return body === undefined ? new ToolInterest(exchange, asks, parts) : interestByBody(exchange, body, parts)
  },
})

/** Servers may also answer clients that do not send the header fields of MCP. A long body is searched in turns. */
function interestByBody(
  exchange: Sendable,
  body: Buffer,
  parts: ReaderParts,
): ToolInterest | undefined | Promise<ToolInterest | undefined> {
  const question = new ListQuestion(body)
  const { workTurns } = parts
  const found = () => {
    const asks = question.asks ? 'list' : asksByHead(exchange)
    return asks === undefined ? undefined : new ToolInterest(exchange, asks, parts)
  }
  if (workTurns.hasCapacity && workOneTurn(question, workTurns)) return found()
  return askInTurns(question, exchange, workTurns).then(found)
}

/** A body that was decided on is sent before the next one of the agent is decided on: all that wait here hold memory. */
async function askInTurns(question: ListQuestion, exchange: Sendable, turns: WorkTurns): Promise<void> {
  do await turns.next(exchange.agent.id, true)
  while (!exchange.isOver && !workOneTurn(question, turns))
}

function asksByHead(exchange: Sendable): Asks {
  const { method, fields, rawHeaders } = exchange
  if (!(fields.mcpStream || fields.acceptsEvents) || asksForMetadata(exchange)) return undefined
  // MCP wants both types in `Accept`, literally.
  if (fields.mcpStream || acceptsJson(rawHeaders)) return 'client'
  return method === 'GET' ? 'events' : undefined
}

/** Longest short body: a request for the tools is shorter, bytes. */
const shortBody = 4_096

/** Whether a body is short, and may ask for the tools: it is read before it is sent, so that the answer comes without coding. */
function mayAskForTools({ method, fields, rawHeaders }: Exchange): boolean {
  const { contentLength } = fields
  if (method !== 'POST' || contentLength <= 0 || contentLength > shortBody) return false
  return fieldValues(rawHeaders, 'content-type').join().toLowerCase().includes('json')
}

class ToolInterest implements Interest {
  readonly #exchange: Sendable
  readonly #parts: ReaderParts
  /** Searches a body that was not read before for the request of a list. */
  readonly #search: ListSearch | undefined
  #asks: Asks

  constructor(exchange: Sendable, asks: Asks, parts: ReaderParts) {
    this.#exchange = exchange
    this.#asks = asks
    this.#parts = parts
    this.#search =
      exchange.method === 'POST' && exchange.body === undefined && exchange.hasBody ? new ListSearch() : undefined
  }

  get wantsPlainBytes(): boolean {
    return this.#asks !== undefined
  }

  seeRequest(piece: Buffer): void {
    if (this.#search?.finds(piece) === true) this.#asks = 'list'
  }

  open(head: ResponseHead, out: AnswerOutput): Rewriter | Refusal | undefined {
    const asks = this.#asks
    if (asks === undefined) return undefined
    const reading = readingOf(asks, head)
    if (reading === 'events') {
      const terms = { isAsked: asks === 'list', needsEndpoint: asks === 'events' }
      return new ToolEvents(this.#exchange, terms, out, this.#parts)
    }
    if (reading !== 'whole') return reading
    const terms = { isList: mustBeList(asks, head.status), isGuessed: asks === 'client' }
    return new ToolDocument(this.#exchange, terms, out, this.#parts)
  }
}

/** An answer is read as a whole, by its events, or not at all. One that may hold a list and cannot be read is refused. */
function readingOf(asks: NonNullable<Asks>, head: ResponseHead): 'whole' | 'events' | undefined | Refusal {
  if (hasNoBody(head.status)) return undefined
  const type = fieldValues(head.fields, 'content-type').join().toLowerCase()
  const isStream = type.includes('text/event-stream')
  const isSuccess = head.status <= 299
  const isJson = type.includes('json')
  // The client of the Go SDK mcp-go takes a list with any status, and of any type, for the answer to its question.
  if (asks !== 'list' && !(isSuccess && (isStream || (isJson && asks === 'client')))) return undefined
  if (isCoded(head) || (isSuccess && (isForeign(type) || (isStream && isJson)))) return unreadable
  if (isStream) return 'events'
  return mustBeList(asks, head.status) && (head.contentLength ?? 0) > longestDocument ? unreadable : 'whole'
}

const hasNoBody = (status: number): boolean => status < 200 || status === 204 || status === 304

/** Whether a readable answer is the list. Servers of the older transport accept the request with 202. */
function mustBeList(asks: Asks, status: number): boolean {
  return asks === 'list' && status <= 299 && status !== 202
}

/** Whether some client reads the text in another character set: clients in Python use the one that the server names. */
function isForeign(type: string): boolean {
  return type.replace(/;[ \t]*charset="?(?:utf-?8|us-ascii)"?[ \t]*(?=;|$)/, '').includes('charset')
}
