import { pipeline, Readable } from 'node:stream'
import { constants, createGzip } from 'node:zlib'
import { acceptsGzip } from '../http/accepts-gzip.ts'
import { jsonReply, type Reply } from '../http/respond.ts'
import type { Page, Paged } from '../storage/store.ts'
import type { OpenCall } from './call.ts'

/** Text made at one go, characters. */
const slice = 65_536

/** Shorter answers are not compressed, characters. */
const leastZipped = 2_048

/**
 * A JSON array of any length, written as its items are read: thousands at once would delay the others that are
 * served. Rejects when the first items cannot be had; later, the connection breaks off.
 *
 * @param items JSON texts, some at a time
 */
export async function listReply({ req }: OpenCall, items: AsyncIterable<readonly string[]>): Promise<Reply> {
  const headers = ['Content-Type', 'application/json; charset=utf-8', 'Vary', 'Accept-Encoding']
  const texts = jsonArray(items)
  const first = (await texts.next()).value ?? ''
  const second = await texts.next()
  const isWhole = second.done === true
  const isZipped = acceptsGzip(req) && (!isWhole || first.length >= leastZipped)
  if (isWhole && !isZipped) return { status: 200, headers, body: first }
  const body = Readable.from(joined(isWhole ? [first] : [first, second.value], texts))
  if (!isZipped) return { status: 200, headers, body }
  return { status: 200, headers: [...headers, 'Content-Encoding', 'gzip'], body: zipped(body) }
}

/** Either of the two ends the other. */
function zipped(body: Readable): Readable {
  const zip = createGzip({ level: constants.Z_BEST_SPEED })
  pipeline(body, zip, () => {})
  return zip
}

async function* jsonArray(items: AsyncIterable<readonly string[]>): AsyncGenerator<string, undefined, void> {
  let text = '['
  let separator = ''
  for await (const some of items) {
    if (some.length > 0) {
      text += separator + some.join(',')
      separator = ','
    }
    if (text.length < slice) continue
    yield text
    text = ''
  }
  yield `${text}]`
}

async function* joined(head: readonly string[], rest: AsyncIterable<string>): AsyncGenerator<string, void, void> {
  yield* head
  yield* rest
}

/** The page asked for. openapi.json has checked it and given the defaults (spec section 8). */
export function readPage(call: OpenCall): Page {
  return { page: Number(call.query['page']), pageSize: Number(call.query['pageSize']) }
}

/** A place in a list that is sorted by time: a time, a comma and an id, as openapi.json has checked. */
export function parseCursor(text: string | undefined): { readonly at: number; readonly id: string } | undefined {
  if (text === undefined) return undefined
  const comma = text.indexOf(',')
  const at = Date.parse(text.slice(0, comma))
  // There is no such day: nothing was at that time.
  return { at: Number.isNaN(at) ? 0 : at, id: text.slice(comma + 1) }
}

/** Some of a list, oldest first: how many, and after which one. */
export function someOf(call: OpenCall) {
  const { limit, after } = call.query
  const cursor = parseCursor(after === undefined ? undefined : String(after))
  return {
    ...(limit !== undefined && { limit: Number(limit) }),
    ...(cursor !== undefined && { after: { createdAt: cursor.at, id: cursor.id } }),
  }
}

export const placeText = (at: number, id: string): string => `${new Date(at).toISOString()},${id}`

/** One page of a list that is whole in memory. */
export function cutPage<T>(all: readonly T[], { page, pageSize }: Page): Paged<T> {
  const start = (page - 1) * pageSize
  return { items: all.slice(start, start + pageSize), totalCount: all.length }
}

/** `{ items, page, pageSize, totalCount }` (spec 4.2, 4.3). */
export function pageReply<T>({ page, pageSize }: Page, { items, totalCount }: Paged<T>): Reply {
  return jsonReply(200, { items, page, pageSize, totalCount })
}
