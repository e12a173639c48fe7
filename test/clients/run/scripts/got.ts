import { createReadStream } from 'node:fs'
import got from 'got'
import { main } from './calls.ts'

await main({
  async call(url, method, body) {
    const { statusCode, body: text } = await got(url, {
      ...(body === undefined ? {} : { body }),
      method: method as 'GET',
      throwHttpErrors: false,
    })
    return [statusCode, text]
  },
  async *stream(url) {
    yield* got.stream(url)
  },
  up: (url, file) => got.post(url, { body: createReadStream(file) }).text(),
})
