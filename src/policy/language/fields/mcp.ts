import type { McpHeads } from '../../request/mcp-heads.ts'
import { memberOf, membersLike } from '../../request/names.ts'
import { share } from '../../turns/evaluation.ts'
import { Messages } from '../../values/path.ts'
import { missing, unknown, unreadable } from '../../values/truth.ts'

/** Fields of MCP: JSON-RPC in the body, and what the head of a request claims of it. */

/**
 * Messages of a JSON-RPC 2.0 request, single or batch; `missing` for any other body. What a lenient server may take for
 * such messages is unreadable.
 */
function messagesOf(body: unknown): readonly Record<string, unknown>[] | typeof missing | typeof unreadable {
  if (!Array.isArray(body)) return isMessage(body) ? [body] : isNearlyMessage(body) ? unreadable : missing
  const areMessages = isMessage(body[0])
  const look = looks.get(body) ?? { at: 0 }
  looks.set(body, look)
  for (; look.at < body.length; look.at++) {
    share(stepsPerLook)
    const element: unknown = body[look.at]
    if (areMessages ? !isMessage(element) : isNearlyMessage(element)) return unreadable
  }
  return areMessages ? body : missing
}

/** How far the elements of a batch were looked at in this turn and earlier ones: there may be 100,000. */
const looks = new WeakMap<object, { at: number }>()
const stepsPerLook = 32
const stepsPerMessage = 16

function isNearlyMessage(value: unknown): boolean {
  const isNamed = (method: unknown) => method === completion || named.some(methods => methods.has(method))
  return membersLike(value, 'jsonrpc').length > 0 || membersLike(value, 'method').some(isNamed)
}

function isMessage(value: unknown): value is Record<string, unknown> {
  return memberOf(value, 'jsonrpc') === '2.0'
}

/** One value for a single message, one for each message of a batch. */
function ofEachMessage(body: unknown, read: (message: Record<string, unknown>) => unknown): unknown {
  const messages = messagesOf(body)
  if (typeof messages === 'symbol') return messages
  if (!Array.isArray(body)) return read(messages[0]!)
  share(messages.length * stepsPerMessage)
  return new Messages(messages.map(read))
}

/** A member of `params` of a `tools/call` message. */
function callMember(message: Record<string, unknown>, key: string): unknown {
  const method = memberOf(message, 'method')
  if (method === unreadable) return unreadable
  return method === 'tools/call' ? memberOf(memberOf(message, 'params'), key) : missing
}

/** The name in a message: the parameter of one of these methods, or the reference of a completion. */
function nameIn(methods: ReadonlySet<unknown>, key: 'name' | 'uri', reference: string) {
  return (message: Record<string, unknown>): unknown => {
    const method = memberOf(message, 'method')
    if (method === unreadable) return unreadable
    const params = memberOf(message, 'params')
    if (methods.has(method)) return memberOf(params, key)
    if (method !== completion) return missing
    const referred = memberOf(params, 'ref')
    const type = memberOf(referred, 'type')
    return type === unreadable ? unreadable : type === reference ? memberOf(referred, key) : missing
  }
}

const completion = 'completion/complete'
const calls: ReadonlySet<unknown> = new Set(['tools/call'])
const resources: ReadonlySet<unknown> = new Set(['resources/read', 'resources/subscribe', 'resources/unsubscribe'])
const prompts: ReadonlySet<unknown> = new Set(['prompts/get'])
const named = [calls, resources, prompts]
const resourceOf = nameIn(resources, 'uri', 'ref/resource')
const promptOf = nameIn(prompts, 'name', 'ref/prompt')

export const mcpMethod = (body: unknown) => ofEachMessage(body, message => memberOf(message, 'method'))
export const mcpTool = (body: unknown) => ofEachMessage(body, message => callMember(message, 'name'))
export const mcpArguments = (body: unknown) => ofEachMessage(body, message => callMember(message, 'arguments'))
export const mcpResource = (body: unknown) => ofEachMessage(body, resourceOf)
export const mcpPrompt = (body: unknown) => ofEachMessage(body, promptOf)

/** Names of a single MCP message, for traces. */
export interface McpNames {
  /** Of the protocol: a closed set. */
  readonly method: string
  /** Of `tools/call`. */
  readonly tool: string | undefined
}

/** Methods of the protocol (MCP 2026-07-28) that clients send. */
const methods = new Set([
  ...['initialize', 'ping', 'server/discover', 'tools/list', 'tools/call', 'prompts/list', 'prompts/get'],
  ...['resources/list', 'resources/read', 'resources/templates/list', 'resources/subscribe', 'resources/unsubscribe'],
  ...['subscriptions/listen', 'completion/complete', 'logging/setLevel', 'tasks/get', 'tasks/list', 'tasks/cancel'],
  ...['tasks/result', 'tasks/update', 'notifications/initialized', 'notifications/cancelled', 'notifications/progress'],
])

/** Undefined for a batch, and for what is no message of the protocol. */
export function mcpNames(body: unknown): McpNames | undefined {
  const method = isMessage(body) ? memberOf(body, 'method') : undefined
  if (typeof method !== 'string' || !methods.has(method)) return undefined
  const tool = mcpTool(body)
  return { method, tool: typeof tool === 'string' ? tool : undefined }
}

export function mcpBatchSize(body: unknown): unknown {
  const messages = messagesOf(body)
  return typeof messages === 'symbol' ? messages : messages.length
}

/** What the head of a request claims of these fields, before its body is known. */
export const claimedMethod = ({ method }: McpHeads): unknown => method ?? unknown
export const claimedTool = claimedName(calls)
export const claimedResource = claimedName(resources)
export const claimedPrompt = claimedName(prompts)
/** The head describes a single message. */
export const claimedBatchSize = () => 1

export function claimedArguments({ method }: McpHeads): unknown {
  return method === undefined || calls.has(method) ? unknown : missing
}

function claimedName(methods: ReadonlySet<unknown>) {
  return ({ method, name }: McpHeads): unknown => {
    if (methods.has(method)) return name ?? unknown
    return method === undefined || method === completion ? unknown : missing
  }
}
