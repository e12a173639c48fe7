/** Which requests may be answered with a list of tools, and how their answers are read. */
import { type Refusal, refuse } from '../../errors.ts'
import { fieldValues } from '../../http/headers.ts'
import type { ResponseHead } from '../../upstream/handler.ts'
import type { Asks, Exchange, Sendable } from '../exchange.ts'
import type { Parts } from '../parts.ts'
import { asksForMetadata, mayBeMetadata } from '../resource-metadata.ts'
import { workInTurns, workOneTurn } from '../work-turns.ts'
import { ListQuestion, ListSearch } from './list-search.ts'
import { longestList } from './tool-list.ts'

/**
 * Notes what a request asks for. Call it just before the request is sent.
 *
 * @returns a promise while a long body is searched in turns
 */
export function noteAsks(exchange: Sendable, parts: Parts): Promise<void> | undefined {
  exchange.asks = asksByHead(exchange, parts)
  const { method, body, agent } = exchange
  if (method !== 'POST' || body === undefined || !readsLists(parts)) return undefined
  const question = new ListQuestion(body)
  const { workTurns } = parts
  // Servers may answer clients that do not send the header fields of MCP.
  const note = () => {
    if (question.asks) exchange.asks = 'list'
  }
  const begun = workTurns.hasRoom
  if (begun && workOneTurn(question, workTurns)) return void note()
  return workInTurns(question, agent.id, workTurns, begun).then(note)
}

/** The search for such a question in a body that streams. */
export function searchUnread(exchange: Exchange, parts: Parts): ListSearch | undefined {
  const isRead = exchange.method !== 'POST' || exchange.body !== undefined || !exchange.hasBody
  return isRead || !readsLists(parts) ? undefined : new ListSearch()
}

function readsLists({ config }: Pick<Parts, 'config'>): boolean {
  return config.Mcp.FilterTools || config.Mcp.NoteToolChanges
}

function asksByHead(exchange: Sendable, parts: Parts): Asks {
  const { method, fields, req } = exchange
  if (asksForMetadata(exchange, method)) return 'metadata'
  if (!(fields.mcpStream || fields.acceptsEvents)) return undefined
  if (!readsLists(parts)) return fields.mcpStream && mayBeMetadata(exchange, method) ? 'metadata' : undefined
  // MCP wants both types in `Accept`, literally.
  const isClient =
    fields.mcpStream || fieldValues(req.rawHeaders, 'accept').join().toLowerCase().includes('application/json')
  return isClient ? 'client' : method === 'GET' ? 'events' : undefined
}

/** Longest short body: a request for the tools is shorter, bytes. */
const shortBody = 4_096

/** Whether a body that the decision did not need is read before it is sent: it is short, and may ask for the tools. */
export function mayAskForTools({ method, fields, req }: Exchange, parts: Parts): boolean {
  const { contentLength } = fields
  if (method !== 'POST' || contentLength <= 0 || contentLength > shortBody || !readsLists(parts)) return false
  return fieldValues(req.rawHeaders, 'content-type').join().toLowerCase().includes('json')
}

const unreadable = refuse('tool_list_unreadable')

/** An answer is read as a whole, by its events, or not at all. */
export type Reading = 'whole' | 'events' | undefined

/** How an answer is read. One that may hold a list and cannot be read is refused. */
export function readingOf(asks: Asks, head: ResponseHead): Reading | Refusal {
  if (asks === undefined || hasNoBody(head.status)) return undefined
  const type = fieldValues(head.fields, 'content-type').join().toLowerCase()
  const isStream = type.includes('text/event-stream')
  const isSuccess = head.status <= 299
  const coding = fieldValues(head.fields, 'content-encoding').join().toLowerCase()
  const isCoded = coding !== '' && coding !== 'identity'
  if (asks === 'metadata') {
    const isReadable = isSuccess && !isStream && !isCoded && (head.contentLength ?? 0) <= longestList
    return isReadable ? 'whole' : undefined
  }
  const isJson = type.includes('json')
  // The client of the Go SDK mcp-go takes a list with any status, and of any type, for the answer to its question.
  if (asks !== 'list' && !(isSuccess && (isStream || (isJson && asks === 'client')))) return undefined
  if (isCoded || (isSuccess && (isForeign(type) || (isStream && isJson)))) return unreadable
  if (isStream) return 'events'
  return mustBeList(asks, head.status) && (head.contentLength ?? 0) > longestList ? unreadable : 'whole'
}

const hasNoBody = (status: number): boolean => status < 200 || status === 204 || status === 304

/** Whether the answer is the list if it is anything. Servers of the older transport accept the question by 202. */
export function mustBeList(asks: Asks, status: number): boolean {
  return asks === 'list' && status <= 299 && status !== 202
}

/** Whether some client reads the text in another character set: those in Python take any that the server names. */
function isForeign(type: string): boolean {
  return type.replace(/;[ \t]*charset="?(?:utf-?8|us-ascii)"?[ \t]*(?=;|$)/, '').includes('charset')
}
