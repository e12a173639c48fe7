/** What a body is, as far as it shows: for reading, never for deciding. */
import type { HitlRequest } from '../types.ts'

export type BodyKind =
  | { readonly kind: 'none' | 'sealed' | 'deleted' }
  | { readonly kind: 'json'; readonly value: unknown }
  | { readonly kind: 'tool'; readonly tool: string; readonly arguments: unknown }
  | {
      readonly kind: 'messages'
      readonly model: string
      readonly messages: readonly Message[]
      readonly value: unknown
    }
  | { readonly kind: 'form'; readonly pairs: readonly (readonly [string, string])[] }
  | { readonly kind: 'text' | 'hex'; readonly text: string }

interface Message {
  readonly role: string
  readonly text: string
}

/** JSON longer than this is shown as text, characters. */
const mostJson = 2_000_000
/** Bytes shown as hexadecimal. */
const mostHex = 16_384

type Given = Pick<HitlRequest, 'body' | 'bodyEncoding' | 'headers' | 'bodyBytes'>

export function readBody({ body, bodyEncoding, headers, bodyBytes }: Given): BodyKind {
  if (bodyBytes === 0 || body === '') return { kind: 'none' }
  if (body === '[SEALED]' && bodyBytes !== body.length) return { kind: 'sealed' }
  if (body === '[DELETED]' && bodyBytes !== body.length) return { kind: 'deleted' }
  if (bodyEncoding === 'base64') return { kind: 'hex', text: hexOf(body) }
  const type = Object.entries(headers).find(([name]) => name.toLowerCase() === 'content-type')?.[1] ?? ''
  if (/^application\/x-www-form-urlencoded/i.test(type)) return { kind: 'form', pairs: [...new URLSearchParams(body)] }
  const value = body.length > mostJson ? undefined : parse(body)
  return value === undefined ? { kind: 'text', text: body } : kindOfJson(value)
}

/** The gateway writes an unseen character as `\\u{202e}`, which JSON does not know: it stays that text. */
export function parse(text: string): unknown {
  try {
    return JSON.parse(text.replace(/\\(?:\\|u\{)/g, found => (found === '\\u{' ? '\\\\u{' : found)))
  } catch {
    return undefined
  }
}

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

function kindOfJson(value: unknown): BodyKind {
  if (!isRecord(value)) return { kind: 'json', value }
  const { jsonrpc, method, params, messages, model } = value
  if (jsonrpc === '2.0' && method === 'tools/call' && isRecord(params)) {
    return { kind: 'tool', tool: String(params['name']), arguments: params['arguments'] ?? {} }
  }
  if (Array.isArray(messages) && messages.length > 0 && messages.every(isRecord)) {
    const read = messages.map(message => ({ role: String(message['role']), text: textOf(message['content']) }))
    return { kind: 'messages', model: typeof model === 'string' ? model : '', messages: read, value }
  }
  return { kind: 'json', value }
}

/** Content of a message: a text, or parts of which some are texts. */
function textOf(content: unknown): string {
  if (typeof content === 'string') return content
  if (!Array.isArray(content)) return JSON.stringify(content ?? null)
  return content
    .map(part => (isRecord(part) && typeof part['text'] === 'string' ? part['text'] : JSON.stringify(part)))
    .join('\n')
}

/** Sixteen bytes a line: offset, hexadecimal, and what is ASCII. */
function hexOf(base64: string): string {
  const bytes = Uint8Array.from(atob(base64.slice(0, Math.ceil(mostHex / 3) * 4)), char => char.charCodeAt(0))
  const lines: string[] = []
  for (let at = 0; at < bytes.length; at += 16) {
    const line = [...bytes.subarray(at, at + 16)]
    const hex = line.map(byte => byte.toString(16).padStart(2, '0')).join(' ')
    const ascii = line.map(byte => (byte > 0x1f && byte < 0x7f ? String.fromCharCode(byte) : '.')).join('')
    lines.push(`${at.toString(16).padStart(6, '0')}  ${hex.padEnd(47)}  ${ascii}`)
  }
  return lines.join('\n')
}
