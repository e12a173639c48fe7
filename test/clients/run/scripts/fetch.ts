import { createReadStream } from 'node:fs'
import { main } from './calls.ts'

await main({
  async call(url, method, body) {
    const answer = await fetch(url, { method, ...(body === undefined ? {} : { body }) })
    return [answer.status, await answer.text()]
  },
  async *stream(url) {
    yield* (await fetch(url)).body!
  },
  async up(url, file) {
    return (await fetch(url, { method: 'POST', body: createReadStream(file), duplex: 'half' } as RequestInit)).text()
  },
})
