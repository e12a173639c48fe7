import { Readable } from 'node:stream'
import { jsonReply, type Reply } from '../http/respond.ts'
import type { Page, Paged } from '../storage/store.ts'
import type { OpenCall } from './call.ts'

/** Text made at one go, characters. */
const slice = 65_536

/**
 * A JSON array of any length, written as its items are read: thousands at once would delay the others that are
 * served. Rejects when the first items cannot be had; later, the connection breaks off.
 *
 * @param items JSON texts, some at a time
 */
export async function listReply(items: AsyncIterable<readonly string[]>): Promise<Reply> {
  const headers = ['Content-Type', 'application/json; charset=utf-8']
  const texts = jsonArray(items)
  const first = (await texts.next()).value ?? ''
  const second = await texts.next()
  if (second.done === true) return { status: 200, headers, body: first }
  return { status: 200, headers, body: Readable.from(joined([first, second.value], texts)) }
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

/** One page of a list that is whole in memory. */
export function cutPage<T>(all: readonly T[], { page, pageSize }: Page): Paged<T> {
  const start = (page - 1) * pageSize
  return { items: all.slice(start, start + pageSize), totalCount: all.length }
}

/** `{ items, page, pageSize, totalCount }` (spec 4.2, 4.3). */
export function pageReply<T>({ page, pageSize }: Page, { items, totalCount }: Paged<T>): Reply {
  return jsonReply(200, { items, page, pageSize, totalCount })
}
