/**
 * JSON-RPC 2.0 as clients of the Model Context Protocol send it over HTTP (MCP, "Streamable HTTP"): one message or, in
 * its revision of 2025-03-26, a batch.
 */
import { parseStrictJson } from '../../base/json.ts'
import { isObject } from '../../base/records.ts'
import type { Refusal } from '../../base/refusals.ts'
import { fieldValues } from '../../http/headers.ts'

export type RpcId = string | number

/** The requests in a body: what must be answered. */
export interface RpcCall {
  /** At least one. */
  readonly ids: readonly RpcId[]
  readonly isBatch: boolean
  /** Key of progress messages to the client; undefined when it asks for none, and for a batch. */
  readonly progressToken: RpcId | undefined
  /** `initialize`: the header fields of its answer open the session. */
  readonly opensSession: boolean
}

/** Longer bodies, and bodies of more values, are not read as JSON-RPC: parsing them would block the event loop. */
const maxBody = 1_048_576
const maxValues = 10_000
/** A batch of more requests is answered as other HTTP is. */
const maxBatch = 100
/** A notification is short, bytes. */
export const maxCancellation = 4_096
/** In the range that JSON-RPC leaves to servers; no SDK uses it. */
const errorCode = -32_010
/** `HeaderMismatch` (MCP 2026-07-28, "Server Validation"). */
const mismatchCode = -32_020

type RpcMessage = Readonly<Record<string, unknown>>

/** Whether a request comes from an MCP client: MCP wants both types in `Accept`, literally. */
export function isFromMcp(method: string | undefined, rawHeaders: readonly string[]): boolean {
  if (method !== 'POST') return false
  const accepted = fieldValues(rawHeaders, 'accept').join(',').toLowerCase()
  return (
    accepted.includes('application/json') &&
    accepted.includes('text/event-stream') &&
    fieldValues(rawHeaders, 'content-type').every(type => /^application\/json\s*(?:;|$)/i.test(type))
  )
}

/** Undefined when the body holds no JSON-RPC request: other JSON, notifications and answers alone. */
export function readRpcCall(body: Buffer): RpcCall | undefined {
  const parsed = body.length > maxBody ? undefined : parseMessage(body)
  const messages: readonly unknown[] = Array.isArray(parsed) ? parsed : [parsed]
  if (!messages.every(isMessage)) return undefined
  const requests = messages.filter(isRequest)
  const [first] = requests
  if (first === undefined || requests.length > maxBatch) return undefined
  const isBatch = Array.isArray(parsed)
  return {
    ids: requests.map(({ id }) => id),
    isBatch,
    progressToken: isBatch ? undefined : progressTokenOf(first),
    opensSession: requests.some(({ method }) => method === 'initialize'),
  }
}

/** Undefined when the body is not JSON, or is ambiguous. */
function parseMessage(body: Buffer): unknown {
  const parsed = parseStrictJson(body, maxValues)
  return 'value' in parsed ? parsed.value : undefined
}

/** The id of the request that a body cancels (MCP, "Cancellation"); undefined of any other body. */
export function readCancellation(body: Buffer): RpcId | undefined {
  if (body.length > maxCancellation || !body.includes('/cancelled')) return undefined
  const message = parseMessage(body)
  if (!isMessage(message) || message['method'] !== 'notifications/cancelled' || 'id' in message) return undefined
  const { params } = message
  const id = isObject(params) ? params['requestId'] : undefined
  return isId(id) ? id : undefined
}

/** The error that answers one request. */
export function rpcError(id: RpcId, { refusal, status, detail, members }: Refusal, requestId: string): RpcMessage {
  const data = { code: refusal, status, reason: detail, requestId, ...members }
  return {
    jsonrpc: '2.0',
    id,
    error: { code: refusal === 'mcp_mismatch' ? mismatchCode : errorCode, message: detail, data },
  }
}

/** Smaller than steps of servers: progress must only grow (MCP, "Progress"), and the server reports its own afterwards. */
const smallStep = 1e-6

export function progressMessage(progressToken: RpcId, step: number, message: string): RpcMessage {
  const params = { progressToken, progress: step * smallStep, message }
  return { jsonrpc: '2.0', method: 'notifications/progress', params }
}

function progressTokenOf({ params }: RpcMessage): RpcId | undefined {
  const meta = isObject(params) ? params['_meta'] : undefined
  const token = isObject(meta) ? meta['progressToken'] : undefined
  return isId(token) ? token : undefined
}

export function isMessage(value: unknown): value is RpcMessage {
  return isObject(value) && value['jsonrpc'] === '2.0'
}

function isRequest(message: RpcMessage): message is RpcMessage & { readonly id: RpcId } {
  return typeof message['method'] === 'string' && isId(message['id'])
}

function isId(value: unknown): value is RpcId {
  return typeof value === 'string' || typeof value === 'number'
}
