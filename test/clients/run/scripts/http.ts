import { once } from 'node:events'
import { createReadStream } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { request } from 'node:https'
import { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { pipeline } from 'node:stream/promises'
import { main } from './calls.ts'

async function send(url: string, method: string, body: Readable): Promise<IncomingMessage> {
  const req = request(url, { method })
  const answered = once(req, 'response')
  await pipeline(body, req)
  return (await answered)[0]
}

await main({
  async call(url, method, body) {
    const answer = await send(url, method, Readable.from(body === undefined ? [] : [body]))
    return [answer.statusCode ?? 0, await text(answer)]
  },
  async *stream(url) {
    yield* await send(url, 'GET', Readable.from([]))
  },
  async up(url, file) {
    return text(await send(url, 'POST', createReadStream(file)))
  },
})
