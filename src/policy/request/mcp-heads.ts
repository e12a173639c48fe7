/**
 * What the header fields of an MCP request say about its body (MCP 2026-07-28, "Request Metadata"). They are claims of
 * the client: a refusal may rest on them alone, and nothing else before the body agrees.
 */
import { missing, unreadable } from '../values/truth.ts'
import { memberOf } from './names.ts'

export interface McpHeads {
  /** `Mcp-Method`; undefined when there is none. */
  readonly method: string | undefined
  /** `Mcp-Name`, decoded; undefined when there is none. */
  readonly name: string | undefined
  /** `MCP-Protocol-Version`; undefined when there is none. */
  readonly version: string | undefined
  /** The first field that is repeated or cannot be decoded. */
  readonly malformed: string | undefined
}

const methodField = 'Mcp-Method'
const nameField = 'Mcp-Name'
const versionField = 'MCP-Protocol-Version'
const versionKey = 'io.modelcontextprotocol/protocolVersion'

/** The parameter that `Mcp-Name` repeats, by method. For other methods it may repeat either. */
const nameKeys: ReadonlyMap<unknown, 'name' | 'uri'> = new Map([
  ['tools/call', 'name'],
  ['prompts/get', 'name'],
  ['resources/read', 'uri'],
  ['resources/subscribe', 'uri'],
  ['resources/unsubscribe', 'uri'],
])

/** The part of a request that decides what its MCP fields mean. */
interface Carrying {
  readonly method: string
  readonly hasBody: boolean
  /** Flat: name, value. */
  readonly rawHeaders: readonly string[]
}

/** Undefined when the head has neither the method nor the name, and for requests without a message. */
export function readMcpHeads({ method, hasBody, rawHeaders }: Carrying): McpHeads | undefined {
  if (method !== 'POST' && !hasBody) return undefined
  const methods = valuesOf(rawHeaders, methodField)
  const names = valuesOf(rawHeaders, nameField)
  if (methods.length === 0 && names.length === 0) return undefined
  const versions = valuesOf(rawHeaders, versionField)
  const name = names[0] === undefined ? undefined : decodeName(names[0])
  const repeated = [methods, names, versions].findIndex(({ length }) => length > 1)
  const undecoded = names.length > 0 && name === undefined ? nameField : undefined
  return {
    method: methods[0],
    name,
    version: versions[0],
    malformed: [methodField, nameField, versionField][repeated] ?? undecoded,
  }
}

function valuesOf(rawHeaders: readonly string[], name: string): string[] {
  const lower = name.toLowerCase()
  const values: string[] = []
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    if (rawHeaders[i]!.toLowerCase() === lower) values.push(rawHeaders[i + 1]!)
  }
  return values
}

const encoded = /^=\?base64\?(.*)\?=$/
const base64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/
const strictUtf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Undefined when the encoding is malformed. */
function decodeName(value: string): string | undefined {
  const text = encoded.exec(value)?.[1]
  if (text === undefined) return value
  if (!base64.test(text)) return undefined
  try {
    return strictUtf8.decode(Buffer.from(text, 'base64'))
  } catch {
    return undefined
  }
}

/**
 * How the heads differ from the body, in words that quote neither; undefined when they agree.
 *
 * @param body value of a JSON body; anything else agrees with nothing
 */
export function mcpMismatch(heads: McpHeads, body: unknown): string | undefined {
  const { method, name, version, malformed } = heads
  if (malformed !== undefined) return `${malformed} is repeated or malformed.`
  if (memberOf(body, 'jsonrpc') !== '2.0') return 'The body is not one JSON-RPC message that can be read.'
  const ofMessage = memberOf(body, 'method')
  if (ofMessage === unreadable || (method !== undefined && method !== ofMessage))
    return `${methodField} does not match the body.`
  const params = memberOf(body, 'params')
  const key = nameKeys.get(ofMessage)
  const stated = key === undefined ? nameOrUri(params) : memberOf(params, key)
  const isFree = key === undefined && stated === missing
  if (name !== undefined && !isFree && name !== stated) return `${nameField} does not match the body.`
  const ofBody = memberOf(memberOf(params, '_meta'), versionKey)
  if (version !== undefined && ofBody !== missing && version !== ofBody) {
    return `${versionField} does not match the body.`
  }
  return undefined
}

function nameOrUri(params: unknown): unknown {
  const name = memberOf(params, 'name')
  return name === missing || name === null ? memberOf(params, 'uri') : name
}
