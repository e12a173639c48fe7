import { Readable } from 'node:stream'
import type { Reply } from '../http/respond.ts'

/** Text made at one go, characters. */
const slice = 65_536

/**
 * A JSON array of whatever length, made as it is read: thousands of items at once would hold up whoever else is
 * served. Rejects when the first items cannot be had; later, the connection breaks off.
 */
export async function listReply(items: AsyncIterable<object>): Promise<Reply> {
  const headers = ['Content-Type', 'application/json; charset=utf-8']
  const texts = jsonArray(items)
  const first = (await texts.next()).value ?? ''
  const second = await texts.next()
  if (second.done === true) return { status: 200, headers, body: first }
  return { status: 200, headers, body: Readable.from(joined([first, second.value], texts)) }
}

async function* jsonArray(items: AsyncIterable<object>): AsyncGenerator<string, undefined, void> {
  let text = '['
  let separator = ''
  for await (const item of items) {
    text += separator + JSON.stringify(item)
    separator = ','
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
