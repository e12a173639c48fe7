import { isRecord, Several } from '../../values/path.ts'
import { missing } from '../../values/truth.ts'

/** Fields that name the same thing in different request bodies: `mcp.*` over JSON-RPC, `llm.*` over model APIs. */

/** Messages of a JSON-RPC 2.0 request, single or batch; undefined for any other body. */
function messagesOf(body: unknown): readonly Record<string, unknown>[] | undefined {
  const messages = Array.isArray(body) ? body : [body]
  return messages.length > 0 && messages.every(isMessage) ? messages : undefined
}

function isMessage(value: unknown): value is Record<string, unknown> {
  return isRecord(value) && own(value, 'jsonrpc') === '2.0'
}

function own(value: unknown, key: string): unknown {
  return isRecord(value) && Object.hasOwn(value, key) ? value[key] : missing
}

/** One value for a single message, one for each message of a batch. */
function ofEachMessage(body: unknown, read: (message: Record<string, unknown>) => unknown): unknown {
  const messages = messagesOf(body)
  if (messages === undefined) return missing
  return Array.isArray(body) ? new Several(messages.map(read)) : read(messages[0]!)
}

/** A member of `params` of a `tools/call` message. */
function callMember(message: Record<string, unknown>, key: string): unknown {
  return own(message, 'method') === 'tools/call' ? own(own(message, 'params'), key) : missing
}

export const mcpMethod = (body: unknown) => ofEachMessage(body, message => own(message, 'method'))
export const mcpTool = (body: unknown) => ofEachMessage(body, message => callMember(message, 'name'))
export const mcpArguments = (body: unknown) => ofEachMessage(body, message => callMember(message, 'arguments'))
export const mcpBatchSize = (body: unknown) => messagesOf(body)?.length ?? missing

export const llmModel = (body: unknown) => own(body, 'model')
export const llmStream = (body: unknown) => own(body, 'stream')

const maxTokenKeys = ['max_tokens', 'max_completion_tokens', 'max_output_tokens']

/** Every limit that is set: the gateway does not know which one the upstream applies. */
export function llmMaxTokens(body: unknown): unknown {
  const found = maxTokenKeys.map(key => own(body, key)).filter(value => value !== missing)
  return found.length > 1 ? found : (found[0] ?? (found.length === 1 ? null : missing))
}

/** Names of the tools offered to the model. */
export function llmTools(body: unknown): unknown {
  const tools = own(body, 'tools')
  if (!Array.isArray(tools)) return missing
  return new Several(tools.map(toolName))
}

function toolName(tool: unknown): unknown {
  const name = own(own(tool, 'function'), 'name')
  if (name !== missing) return name
  const plain = own(tool, 'name')
  return plain === missing ? own(tool, 'type') : plain
}

const promptKeys = ['messages', 'system', 'prompt', 'input', 'instructions']

/** UTF-8 bytes of all text that the model is given. */
export function llmPromptBytes(body: unknown): unknown {
  const prompts = promptKeys.map(key => own(body, key)).filter(value => value !== missing)
  if (prompts.length === 0) return missing
  return prompts.reduce<number>((sum, prompt) => sum + textBytes(prompt), 0)
}

function textBytes(value: unknown): number {
  if (typeof value === 'string') return Buffer.byteLength(value)
  if (typeof value !== 'object' || value === null) return 0
  return Object.values(value).reduce((sum: number, part: unknown) => sum + textBytes(part), 0)
}
