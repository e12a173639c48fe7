/** What a body is, as far as it shows: for reading, never for deciding. */

import type { HitlRequest } from '../types.ts'
import { bytesInTurns, bytesOf, textOf } from './bytes.ts'
import { type Finding, findingsIn, type Source } from './findings.ts'
import { type Pair, pairsOf } from './form.ts'
import {
  type Json,
  type JsonObject,
  type JsonProblem,
  type JsonString,
  mostLevels,
  mostValues,
  readJson,
  readJsonInTurns,
  stringOf,
} from './json.ts'
import { type Multipart, partsIn } from './multipart.ts'
import { type Picture, pictureOf } from './picture.ts'
import { turn } from './turns.ts'

export type Shape =
  | { readonly kind: 'json'; readonly value: Json }
  | {
      readonly kind: 'tool'
      readonly tool: JsonString
      readonly arguments: Json | undefined
      /** The message without the two. */
      readonly rest: JsonObject
    }
  | {
      readonly kind: 'messages'
      readonly messages: readonly JsonObject[]
      /** The body without the messages. */
      readonly rest: JsonObject
    }
  | {
      readonly kind: 'graphql'
      readonly query: JsonString
      readonly operationName: Json | undefined
      readonly variables: Json | undefined
      /** The body without these. */
      readonly rest: JsonObject
    }
  | { readonly kind: 'form'; readonly pairs: readonly Pair[] }
  | ({ readonly kind: 'multipart' } & Multipart)
  | { readonly kind: 'picture'; readonly picture: Picture }
  /** Long JSON, which is read when it is shown. */
  | { readonly kind: 'unread' }
  | { readonly kind: 'text' | 'bytes' }

export interface ReadBody extends Source {
  readonly bytes: Uint8Array<ArrayBuffer>
  /** How it is shown first. */
  readonly shape: Shape
  /** What a person must know of the way in which it is shown. */
  readonly notes: readonly string[]
  /** Of detectors, in bytes. */
  readonly places: readonly Finding[]
}

/** Why there is nothing to read. */
export type MissingBody = 'none' | 'sealed' | 'deleted'

/** Longer JSON is read in turns, characters. */
const longJson = 500_000
/** Longer bodies are decoded in turns, characters of base64. */
const longBody = 2_000_000
/** Of bytes that are no text one in so many may be in what is shown as text. */
const mostOthers = 8
/** Bytes that are read to distinguish text from other data. */
const sample = 4_096

type Given = Pick<HitlRequest, 'body' | 'bodyEncoding' | 'headers' | 'bodyBytes' | 'findingPlaces'>

/** @param view with the body in base64 */
export function readBody(view: Given): ReadBody | MissingBody {
  if (view.bodyBytes === 0) return 'none'
  // The gateway has no bytes to encode, and says why.
  if (view.bodyEncoding !== 'base64') return view.body === '[DELETED]' ? 'deleted' : 'sealed'
  return readBytes(bytesOf(view.body), view.headers, view.findingPlaces)
}

/** Whether decoding the body takes so long that it must be done in turns. */
export const isLongBody = ({ body, bodyEncoding }: Given): boolean =>
  bodyEncoding === 'base64' && body.length > longBody

/** Long bodies that are on the screen, and their JSON: who compares them does not read them again. */
const shown = new WeakMap<Given, Promise<ReadBody | MissingBody>>()
const shownJson = new WeakMap<ReadBody, Promise<Json | JsonProblem>>()

/** The same for a long body. */
export const readBodyInTurns = async (view: Given): Promise<ReadBody | MissingBody> =>
  isLongBody(view) ? (shown.get(view) ?? decode(view)) : readBody(view)

/** The same for one that is shown. */
export function readShownBody(view: Given): Promise<ReadBody | MissingBody> {
  const read = readBodyInTurns(view)
  shown.set(view, read)
  return read
}

async function decode({ body, headers, findingPlaces }: Given): Promise<ReadBody> {
  const bytes = await bytesInTurns(body)
  await turn()
  return readBytes(bytes, headers, findingPlaces)
}

/** The JSON of a body that is not read yet. */
export const readJsonOf = (body: ReadBody): Promise<Json | JsonProblem> =>
  shownJson.get(body) ?? readJsonInTurns(body.text)

/** @param headers that say what the bytes are */
export function readBytes(
  bytes: Uint8Array<ArrayBuffer>,
  headers: Readonly<Record<string, string>>,
  places: readonly Finding[] = [],
): ReadBody {
  const { text, invalid } = textOf(bytes)
  const type = fieldOf(headers, 'content-type')
  const { shape, note } = /^multipart\//i.test(type)
    ? shapeOfParts(bytes, type)
    : invalid > 0
      ? shapeOfOthers(bytes, invalid)
      : shapeOf(text, type)
  const notes = [note, ...codingNotes(headers), charsetNote(type)].flatMap(one => one ?? [])
  return { bytes, text, places, findings: findingsIn(bytes, places), shape, notes }
}

const fieldOf = (headers: Readonly<Record<string, string>>, wanted: string): string =>
  Object.entries(headers).find(([name]) => name.toLowerCase() === wanted)?.[1] ?? ''

interface Shaped {
  readonly shape: Shape
  readonly note?: string | undefined
}

function shapeOfParts(bytes: Uint8Array, type: string): Shaped {
  const parts = partsIn(bytes, type)
  return typeof parts === 'string'
    ? { shape: { kind: 'text' }, note: parts }
    : { shape: { kind: 'multipart', ...parts } }
}

function shapeOfOthers(bytes: Uint8Array, invalid: number): Shaped {
  const picture = pictureOf(bytes)
  if (picture !== undefined) return { shape: { kind: 'picture', picture } }
  const { length } = bytes.subarray(0, sample)
  const others = bytes.subarray(0, sample).reduce((count, byte) => count + (isText(byte) ? 0 : 1), 0)
  const note = `${invalid} of ${bytes.length} bytes are not UTF-8; as text they are shown as their value.`
  return { shape: { kind: others * mostOthers > length ? 'bytes' : 'text' }, note }
}

const isText = (byte: number): boolean =>
  (byte > 0x1f && byte < 0x7f) || byte === 0x0a || byte === 0x0d || byte === 0x09

function shapeOf(text: string, type: string): Shaped {
  if (/^application\/x-www-form-urlencoded/i.test(type)) return { shape: { kind: 'form', pairs: pairsOf(text) } }
  const asText: Shape = { kind: 'text' }
  const mayBeJson = /^[ \t\r\n]*[[{]/.test(text)
  if (!mayBeJson && !/json/i.test(type)) return { shape: asText }
  if (text.length > longJson) return { shape: { kind: 'unread' } }
  const doubled = new Set<string>()
  return shapeOfJson(readJson(text, doubled), text, doubled)
}

/** What long JSON is that is shown. */
export async function readLong(body: ReadBody): Promise<ReadBody> {
  const doubled = new Set<string>()
  const reading = readJsonInTurns(body.text, doubled)
  shownJson.set(body, reading)
  const { shape, note } = shapeOfJson(await reading, body.text, doubled)
  return { ...body, shape, notes: note === undefined ? body.notes : [note, ...body.notes] }
}

function shapeOfJson(value: Json | JsonProblem, text: string, doubled: ReadonlySet<string>): Shaped {
  if (typeof value === 'string') return { shape: { kind: 'text' }, note: problems[value] }
  return { shape: kindOfJson(value, text), note: doubledNote(doubled) }
}

const problems: Readonly<Record<JsonProblem, string>> = {
  invalid: 'This is not valid JSON, and is shown as text.',
  deep: `JSON of more than ${mostLevels} levels is shown as text.`,
  many: `JSON of more than ${mostValues.toLocaleString('en')} values is shown as text.`,
}

function doubledNote(names: ReadonlySet<string>): string | undefined {
  if (names.size === 0) return undefined
  const first = JSON.stringify([...names][0])
  const others = names.size > 1 ? ` and ${names.size - 1} others` : ''
  return `The name ${first}${others} stands more than once in one object. Servers differ in which one they take.`
}

/** Fields that say how a body, or a part of one, is coded. */
export const codingFields = ['Content-Encoding', 'Content-Transfer-Encoding']

function codingNotes(headers: Readonly<Record<string, string>>): readonly string[] {
  const codings = codingFields.map(name => [name, fieldOf(headers, name.toLowerCase())] as const)
  return codings
    .filter(([, coding]) => coding !== '' && !/^(?:identity|binary|[78]bit)$/i.test(coding))
    .map(([name, coding]) => `${name} is ${coding}: the body is shown as it is sent.`)
}

function charsetNote(type: string): string | undefined {
  const [, charset] = /;[ \t]*charset=["']?([\w.:-]{1,40})/i.exec(type) ?? []
  if (charset === undefined || /^(?:utf-?8|us-ascii)$/i.test(charset)) return undefined
  return `Content-Type says that the text is ${charset}. It is shown as UTF-8.`
}

/** A view of its own needs names that stand once: otherwise it would choose one of them. */
function kindOfJson(value: Json, text: string): Shape {
  const plain: Shape = { kind: 'json', value }
  if (value.kind !== 'object' || value.doubled.size > 0) return plain
  return toolIn(value, text) ?? messagesIn(value) ?? graphqlIn(value, text) ?? plain
}

/** The beginning of a document of GraphQL, behind comments. */
const graphql = /^(?:[\s,]|#[^\n]*\n)*(?:\{|(?:query|mutation|subscription|fragment)\b)/

function graphqlIn(body: JsonObject, text: string): Shape | undefined {
  const query = memberOf(body, 'query')
  if (query?.kind !== 'string' || !graphql.test(stringOf(text, query))) return undefined
  return {
    kind: 'graphql',
    query,
    operationName: memberOf(body, 'operationName'),
    variables: memberOf(body, 'variables'),
    rest: without(body, 'query', 'operationName', 'variables'),
  }
}

export const memberOf = (object: JsonObject, wanted: string): Json | undefined =>
  object.members.find(({ name }) => name === wanted)?.value

function toolIn(message: JsonObject, text: string): Shape | undefined {
  const is = (name: string, wanted: string) => {
    const value = memberOf(message, name)
    return value?.kind === 'string' && stringOf(text, value) === wanted
  }
  const params = memberOf(message, 'params')
  if (!is('jsonrpc', '2.0') || !is('method', 'tools/call')) return undefined
  if (params?.kind !== 'object' || params.doubled.size > 0) return undefined
  const name = memberOf(params, 'name')
  if (name?.kind !== 'string') return undefined
  const others = without(params, 'name', 'arguments')
  const members = message.members.flatMap(member => {
    if (member.value !== params) return member
    return others.members.length === 0 ? [] : { ...member, value: others }
  })
  return {
    kind: 'tool',
    tool: name,
    arguments: memberOf(params, 'arguments'),
    rest: { ...message, members },
  }
}

function messagesIn(body: JsonObject): Shape | undefined {
  const list = memberOf(body, 'messages')
  if (list?.kind !== 'list' || list.items.length === 0) return undefined
  const messages = list.items.filter(item => item.kind === 'object' && item.doubled.size === 0) as JsonObject[]
  if (messages.length < list.items.length) return undefined
  return { kind: 'messages', messages, rest: without(body, 'messages') }
}

export const without = (object: JsonObject, ...names: readonly string[]): JsonObject => ({
  ...object,
  members: object.members.filter(({ name }) => !names.includes(name)),
})
