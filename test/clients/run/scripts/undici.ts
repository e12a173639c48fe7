import { createReadStream } from 'node:fs'
import { EnvHttpProxyAgent, request, setGlobalDispatcher } from 'undici'
import { main } from './calls.ts'

setGlobalDispatcher(new EnvHttpProxyAgent())

await main({
  async call(url, method, body) {
    const answer = await request(url, { method, body: body ?? null })
    return [answer.statusCode, await answer.body.text()]
  },
  async *stream(url) {
    yield* (await request(url)).body
  },
  async up(url, file) {
    return (await request(url, { method: 'POST', body: createReadStream(file) })).body.text()
  },
})
