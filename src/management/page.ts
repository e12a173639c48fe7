import { jsonReply, type Reply } from '../http/respond.ts'
import type { Page, Paged } from '../storage/store.ts'
import type { OpenCall } from './call.ts'

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
