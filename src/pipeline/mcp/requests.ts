/** MCP clients: their JSON-RPC requests get JSON-RPC answers, and they can cancel held requests. */
import { hash } from 'node:crypto'
import type { RefusalCode } from '../../base/refusal-kinds.ts'
import { isRefusal, type Refusal } from '../../base/refusals.ts'
import { fieldValues } from '../../http/headers.ts'
import { sendReply } from '../../http/respond.ts'
import { type Admitted, type Decided, type Exchange, isAdmitted } from '../exchange.ts'
import type { Parts } from '../parts.ts'
import { holdBody } from '../steps/hold-body.ts'
import { isFromMcp, maxCancellation, type RpcId, readCancellation, readRpcCall } from './json-rpc.ts'
import { RpcAnswer } from './rpc-answer.ts'

/**
 * Refusals by a policy or a person, of requests that contradict themselves, and for want of what a person must grant. The others stay
 * HTTP statuses: clients log in again on 401 and slow down on 429.
 */
const saidInRpc = new Set<RefusalCode>([
  'policy_denied',
  'policy_error',
  'mcp_mismatch',
  'credential_needed',
  'credential_scope_needed',
  'own_token_needed',
  'hitl_queue_full',
  'hitl_storage_full',
])
/** A refused body up to this length is read anyway, so that the connection can stay open, bytes. */
const maxRefusedBody = 65_536

/** Notes the JSON-RPC requests of a body, if an MCP client sent it. */
export function readRpc(exchange: Exchange, body: Buffer, { config }: Parts): void {
  const { req, res, requestId } = exchange
  if (exchange.rpc !== undefined || config.Mcp.Errors === 'Http' || !isFromMcp(req.method, req.rawHeaders)) return
  const call = readRpcCall(body)
  if (call !== undefined) exchange.rpc = new RpcAnswer(call, res, requestId)
}

/** Reads the JSON-RPC request that is refused, to answer it by its id, unless it is long or its length is unknown. */
export async function readRefused(exchange: Exchange, refusal: Refusal, parts: Parts): Promise<void> {
  const { req, fields } = exchange
  if (!saidInRpc.has(refusal.refusal) || exchange.rpc !== undefined || exchange.isOver || !isAdmitted(exchange)) return
  if (parts.config.Mcp.Errors === 'Http' || !isFromMcp(req.method, req.rawHeaders)) return
  if (exchange.body !== undefined) return readRpc(exchange, exchange.body, parts)
  if (fields.contentLength <= 0 || fields.contentLength > maxRefusedBody || exchange.expectsContinue) return
  const held = await holdBody(exchange, maxRefusedBody, parts)
  if (!isRefusal(held) && held.complete) readRpc(exchange, held.bytes, parts)
}

/** Key by which `notifications/cancelled` finds a call: an id within a session with a server. */
export function cancelKeyOf(exchange: Admitted): string | undefined {
  const { call } = exchange.rpc ?? {}
  return call === undefined || call.isBatch ? undefined : keyOf(exchange, call.ids[0]!)
}

function keyOf({ target, req }: Admitted, id: RpcId): string {
  return hash('sha256', JSON.stringify([target.url, fieldValues(req.rawHeaders, 'mcp-session-id'), id]), 'hex')
}

/**
 * Whether a body that the decision did not need may cancel a held request: it is a message of an MCP client, short or of
 * unknown length.
 */
export function mayCancel({ req, fields, decision, hasBody }: Decided, { config }: Parts): boolean {
  const { contentLength } = fields
  return (
    hasBody &&
    decision.phase === 'head' &&
    contentLength <= maxCancellation &&
    config.Mcp.Errors === 'JsonRpc' &&
    isFromMcp(req.method, req.rawHeaders)
  )
}

/**
 * Whether the body cancels a held request of the agent. If so, the request is withdrawn and the notification is answered:
 * the server never received the request.
 */
export async function cancelsHeld(exchange: Admitted, body: Buffer, parts: Parts): Promise<boolean> {
  const { req, res, agent, requestId } = exchange
  const id = readCancellation(body)
  if (id === undefined || !isFromMcp(req.method, req.rawHeaders)) return false
  if (!(await parts.queue.cancelCall(agent.id, keyOf(exchange, id), requestId))) return false
  if (exchange.isOver) return true
  exchange.ending = 'refused'
  void sendReply(res, { status: 202 }, requestId)
  return true
}
